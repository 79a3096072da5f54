#include "execute/serve/grammar/scalar_schemas.h"

#include <algorithm>
#include <limits>
#include <map>

#include "execute/serve/grammar/regex.h"

namespace systole::grammar {
namespace {

const std::map<std::string_view, std::string_view>& formats() {
  static const std::map<std::string_view, std::string_view> all{
      {"date", "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"},
      {"time", "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"},
      {"date-time",
       "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
       "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"},
      {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"}};
  return all;
}

}  // namespace

Error placed(const std::string& path, Error error) {
  error.message = fmt::format("{}: {}", path, error.message);
  error.where = {};
  return error;
}

std::string under(const std::string& path, std::string_view key) {
  std::string result = path + "/";
  for (const char c : key) result += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return result;
}

Result<std::optional<std::int64_t>> ScalarSchemas::count_of(const Node& schema, const std::string& path,
                                                            std::string_view key, std::int64_t most) {
  const Node* value = schema.find(key);
  if (value == nullptr) return std::optional<std::int64_t>();
  const Result<std::int64_t> count = value->as_int(0, most);
  if (!count.ok()) return placed(under(path, key), count.error());
  return std::optional(*count);
}

Result<ScalarSchemas::State> ScalarSchemas::string(const Node& schema, const std::string& path, State from) {
  constexpr std::int64_t kMostLength = 20'000;
  const auto least = TRY(count_of(schema, path, "minLength", kMostLength));
  const auto most = TRY(count_of(schema, path, "maxLength", std::numeric_limits<std::int64_t>::max()));
  const Node *pattern = schema.find("pattern"), *format = schema.find("format");
  if (most && *most < least.value_or(0)) return error(ErrorKind::invalid, "{}: maxLength is less than minLength", path);
  if (pattern == nullptr && format == nullptr) {
    if (!most && least.value_or(0) == 0) return json_.string(from);
    return counted_string(least.value_or(0), most, path, from);
  }
  if (least.value_or(0) > 0 || most || (pattern != nullptr && format != nullptr))
    return error(ErrorKind::unsupported, "{}: of pattern, format and the lengths only one is supported at a time", path)
        .hinted("write the length into the pattern: ^[a-z]{2,8}$");
  std::string_view expression;
  if (format != nullptr) {
    const auto known = formats().find(format->kind() == NodeKind::string ? format->text() : "");
    if (known == formats().end())
      return error(ErrorKind::unsupported, "{}: {} is not supported", under(path, "format"), format->describe())
          .hinted("date, time, date-time and uuid are");
    expression = known->second;
  } else {
    if (pattern->kind() != NodeKind::string) return placed(under(path, "pattern"), pattern->wrong("text"));
    expression = pattern->text();
  }
  const Result<Regex> regex = Regex::parse(expression);
  if (!regex.ok()) return placed(under(path, "pattern"), regex.error());
  const State inside = builder_.text(from, "\"");
  return builder_.text(regex->add(builder_, inside, Spelling::json, Regex::Match::search), "\"");
}

Result<ScalarSchemas::State> ScalarSchemas::counted_string(std::int64_t least, std::optional<std::int64_t> most,
                                                           const std::string& path, State from) {
  from = builder_.text(from, "\"");
  for (std::int64_t i = 0; i < least; ++i) from = json_.character(from);
  if (!most) {
    const State loop = builder_.state();
    builder_.skip(from, loop);
    builder_.skip(json_.character(loop), loop);
    return builder_.text(loop, "\"");
  }
  std::vector<State> ends{from};
  for (std::int64_t i = least; i < *most && !builder_.full(); ++i) ends.push_back(from = json_.character(from));
  if (builder_.full()) return error(ErrorKind::does_not_fit, "{}: maxLength is too large", path);
  return builder_.text(builder_.joined(ends), "\"");
}

// A bound, whichever of the two forms gives it.
Result<std::optional<std::int64_t>> ScalarSchemas::bound(const Node& schema, const std::string& path, bool lowest) {
  const std::string_view key = lowest ? "minimum" : "maximum",
                         strict = lowest ? "exclusiveMinimum" : "exclusiveMaximum";
  constexpr std::int64_t kMost = 999'999'999'999'999'999;
  std::optional<std::int64_t> result;
  for (const std::string_view each : {key, strict}) {
    const Node* value = schema.find(each);
    if (value == nullptr) continue;
    const Result<std::int64_t> number = value->as_int(-kMost, kMost);
    if (!number.ok()) return placed(under(path, each), error(ErrorKind::unsupported, "{}", number.error().message));
    const std::int64_t allowed = each == strict ? *number + (lowest ? 1 : -1) : *number;
    result = !result ? allowed : lowest ? std::max(*result, allowed) : std::min(*result, allowed);
  }
  return result;
}

Result<ScalarSchemas::State> ScalarSchemas::integer(const Node& schema, const std::string& path, State from) {
  const auto lowest = TRY(bound(schema, path, true)), highest = TRY(bound(schema, path, false));
  if (lowest && highest && *lowest > *highest)
    return error(ErrorKind::invalid, "{}: no integer lies between its bounds", path);
  return json_.integer(from, lowest, highest);
}

Result<ScalarSchemas::State> ScalarSchemas::number(const Node& schema, const std::string& path, State from) {
  for (const char* key : {"maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    if (schema.find(key) != nullptr)
      return error(ErrorKind::unsupported, "{}: '{}' of numbers that are no integers is not supported", path, key);
  }
  const Node* lowest = schema.find("minimum");
  if (lowest == nullptr) return json_.number(from);
  const Result<double> least = lowest->as_double();
  if (!least.ok() || *least != 0)
    return error(ErrorKind::unsupported, "{}: a minimum other than 0 of numbers that are no integers is not supported",
                 path);
  return json_.number(from, false);
}

}  // namespace systole::grammar
