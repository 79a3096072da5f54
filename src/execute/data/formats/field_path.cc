#include "execute/data/formats/field_path.h"

#include <algorithm>

#include "execute/data/formats/json_walk.h"

namespace systole {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostSteps = 100;

Error wrong_path(std::string_view text, std::size_t at, std::string_view what) {
  return error(ErrorKind::invalid, "the path '{}' is wrong at character {}: {}", text, at + 1, what)
      .hinted("paths are written like meta.lang, messages[*].content or choices[0].text");
}

Result<FieldPath::Step> bracket_step(std::string_view text, std::size_t& at) {
  const std::size_t end = text.find(']', at);
  if (end == text.npos) return wrong_path(text, at, "a bracket that is never closed");
  const std::string_view inside = text.substr(at + 1, end - at - 1);
  FieldPath::Step step;
  if (inside != "*") {
    const bool digits = !inside.empty() && inside.size() < 10 && inside.find_first_not_of("0123456789") == inside.npos;
    if (!digits) return wrong_path(text, at, "a bracket holds a number or *");
    step.index = std::stoll(std::string(inside));
  }
  at = end + 1;
  return step;
}

Result<FieldPath::Step> key_step(std::string_view text, std::size_t& at) {
  const bool quoted = at < text.size() && text[at] == '"';
  const std::size_t begin = at + (quoted ? 1 : 0);
  std::size_t end = quoted ? text.find('"', begin) : text.find_first_of(".[", begin);
  if (quoted && end == text.npos) return wrong_path(text, at, "a quote that is never closed");
  end = std::min(end, text.size());
  if (end == begin) return wrong_path(text, at, "a key is missing");
  FieldPath::Step step;
  step.key = text.substr(begin, end - begin);
  at = end + (quoted ? 1 : 0);
  return step;
}

Result<Json> parse(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& bad) {
    const std::string_view what = bad.what();
    return error(ErrorKind::invalid, "not JSON: {}", what.substr(std::min(what.find("] ") + 2, what.size())));
  }
}

}  // namespace

Result<FieldPath> FieldPath::parse(std::string_view text) {
  FieldPath path;
  std::size_t at = 0;
  while (at < text.size() || path.steps.empty()) {
    const bool bracket = at < text.size() && text[at] == '[';
    if (!bracket && !path.steps.empty()) {
      if (text[at] != '.') return wrong_path(text, at, "a dot or bracket is missing");
      ++at;
    }
    path.steps.push_back(TRY(bracket ? bracket_step(text, at) : key_step(text, at)));
    if (path.steps.size() > kMostSteps) return wrong_path(text, at, "it has more than 100 steps");
  }
  return path;
}

std::vector<const Json*> values_at(const Json& root, const FieldPath& path) {
  std::vector<const Json*> values{&root}, next;
  for (const FieldPath::Step& step : path.steps) {
    next.clear();
    for (const Json* value : values) {
      if (!step.key.empty()) {
        if (!value->is_object()) continue;
        if (const auto found = value->find(step.key); found != value->end()) next.push_back(&*found);
      } else if (value->is_array()) {
        const auto size = static_cast<std::int64_t>(value->size());
        for (std::int64_t i = std::max<std::int64_t>(step.index, 0); i < (step.index < 0 ? size : step.index + 1); ++i)
          if (i < size) next.push_back(&(*value)[static_cast<std::size_t>(i)]);
      }
    }
    values.swap(next);
  }
  return values;
}

Result<std::string> joined_texts(const std::vector<const Json*>& values, std::string_view shown) {
  if (values.empty()) return error(ErrorKind::invalid, "the record has nothing at '{}'", shown);
  std::string text;
  for (const Json* value : values) {
    if (!value->is_string()) return error(ErrorKind::invalid, "'{}' is a {}, not a string", shown, value->type_name());
    if (value != values.front()) text += '\n';
    text += value->get_ref<const std::string&>();
  }
  return text;
}

namespace {

std::string shown_of(const FieldPath& path) {
  std::string text;
  for (const FieldPath::Step& step : path.steps) {
    if (step.key.empty()) {
      text += step.index < 0 ? std::string("[*]") : fmt::format("[{}]", step.index);
    } else {
      text += (text.empty() ? "" : ".") + step.key;
    }
  }
  return text;
}

}  // namespace

Result<std::string> json_text_at(std::string_view json, const FieldPath& path) {
  const Json root = TRY(parse(json));
  return joined_texts(values_at(root, path), shown_of(path));
}

Result<FieldValue> json_value_at(std::string_view json, const FieldPath& path) {
  const Json root = TRY(parse(json));
  return value_of_first(values_at(root, path));
}

FieldValue value_of_first(const std::vector<const Json*>& values) {
  FieldValue found;
  if (values.empty() || values[0]->is_null()) return found;
  const Json& value = *values[0];
  if (value.is_boolean()) {
    found.kind = FieldValue::Kind::boolean;
    found.boolean = value.get<bool>();
  } else if (value.is_number()) {
    found.kind = FieldValue::Kind::number;
    found.number = value.get<double>();
    if (value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX))
      found.integer = value.get<std::int64_t>();
  } else {
    found.kind = FieldValue::Kind::text;
    found.text =
        value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return found;
}

}  // namespace systole
