// JSON Lines: one object per line, its text in one field.

#include "execute/data/jsonl.h"

#include <nlohmann/json.hpp>

#include "execute/data/formats/json_walk.h"

namespace systole {
namespace {

using Json = nlohmann::json;

std::string what_a_line_is(const std::string& field) {
  return fmt::format("each line is an object such as {{\"{}\": \"...\"}}; another field is chosen by `field:`", field);
}

Error not_usable(const Where& where, std::string what, std::string hint) {
  return error(ErrorKind::invalid, "{}", what).at(Where(where)).hinted(std::move(hint));
}

// The code of the escape `\uXXXX` at the start of `text`; -1 if there is none.
int escaped(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  int number = 0;
  for (const char digit : text.substr(2, 4)) {
    const std::size_t value = std::string_view("0123456789abcdef").find(static_cast<char>(digit | 0x20));
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && value == std::string_view::npos) return -1;
    number = number * 16 + (decimal ? digit - '0' : static_cast<int>(value));
  }
  return number;
}

bool is_first_half(int number) { return number >= 0xD800 && number <= 0xDBFF; }
bool is_second_half(int number) { return number >= 0xDC00 && number <= 0xDFFF; }

// The position of the first unpaired surrogate escape from `at` on; npos if there is none.
std::size_t find_half_pair(std::string_view record, std::size_t at = 0) {
  while ((at = record.find('\\', at)) != record.npos) {
    const int number = escaped(record.substr(at));
    if (is_second_half(number)) return at;
    if (is_first_half(number) && !is_second_half(escaped(record.substr(at + 6)))) return at;
    at += is_first_half(number) ? 12 : number >= 0 ? 6 : 2;
    if (at >= record.size()) break;
  }
  return record.npos;
}

// Extracts REASON from nlohmann's "[json.exception...] parse error ... while parsing value - REASON; last read: ...".
std::string reason_of(std::string_view what) {
  const std::size_t begin = what.find(" - ");
  if (begin == what.npos) return std::string(what);
  return std::string(what.substr(begin + 3, what.find("; ", begin) - begin - 3));
}

Error not_json(std::string_view record, const Json::parse_error& bad, const std::string& field, Where place) {
  const std::size_t at = std::max<std::size_t>(bad.byte, 1) - 1;
  place.col = static_cast<int>(at + 1);
  if (bad.byte > record.size()) {
    return not_usable(place, "the JSON record ends too early",
                      what_a_line_is(field) + "; records of several lines become so with jq -c . FILE");
  }
  const std::string_view rest = record.substr(at);
  for (const std::string_view word : {"NaN", "Infinity"}) {
    if (!rest.starts_with(word)) continue;
    return not_usable(place, fmt::format("not JSON: {}, which Python writes, is no number of JSON's", word),
                      "write null there, or leave the field out; json.dumps(..., allow_nan=False) refuses it");
  }
  for (const std::string_view word : {"None", "True", "False", "'"}) {
    if (!rest.starts_with(word)) continue;
    return not_usable(place, fmt::format("not JSON: {} is as Python prints it", word),
                      "write each record with json.dumps(record)");
  }
  const std::string reason = reason_of(bad.what());
  if (const std::size_t half = find_half_pair(record); half != record.npos && reason.find("surrogate") != reason.npos) {
    place.col = static_cast<int>(half + 1);
    return not_usable(
        place, fmt::format("{} is half a surrogate pair, and the other half is not beside it", record.substr(half, 6)),
        "the text was cut inside a character: write it anew, or put U+FFFD there with `invalid_utf8: "
        "replace`");
  }
  return not_usable(place, "not JSON: " + reason, what_a_line_is(field));
}

}  // namespace

std::size_t replace_half_pairs(std::string& record) {
  std::size_t replaced = 0;
  for (std::size_t at = find_half_pair(record); at != record.npos; at = find_half_pair(record, at + 6), ++replaced)
    record.replace(at, 6, "\\ufffd");
  return replaced;
}

namespace {

Result<Json> object_of(std::string_view record, const std::string& field, const Where& where) {
  Json json;
  const auto refused = [&](std::string what) { return not_usable(where, std::move(what), what_a_line_is(field)); };
  try {
    json = Json::parse(record.begin(), record.end());
  } catch (const Json::parse_error& bad) {
    return not_json(record, bad, field, where);
  } catch (const Json::exception& bad) {  // a number is out of range
    return refused(fmt::format("not JSON: {}", bad.what()));
  }
  if (!json.is_object()) return refused(fmt::format("a JSON {}, not an object", json.type_name()));
  return json;
}

Result<bool> is_kept(const Json& json, const RecordFilter& filter, const Where& where) {
  Result<bool> kept = filter.keeps([&](const std::string& written) -> Result<FieldValue> {
    return value_of_first(values_at(json, filter.path_of(written)));
  });
  if (!kept.ok()) return std::move(kept).error().at(Where(where));
  return kept;
}

// `takes`: the text is moved out of the record.
Result<std::string> text_at(Json& json, JsonField& field, const Where& where, bool takes) {
  const std::string& name = field.name;
  const auto refused = [&](std::string what) { return not_usable(where, std::move(what), what_a_line_is(name)); };
  const auto found = json.find(name);
  if (found == json.end() && name.find_first_of(".[") != name.npos) {  // a path
    if (!field.path) {
      Result<FieldPath> path = FieldPath::parse(name);
      if (!path.ok()) return not_usable(where, path.error().message, path.error().hint);
      field.path = *std::move(path);
    }
    Result<std::string> text = joined_texts(values_at(json, *field.path), name);
    if (!text.ok()) return refused(text.error().message);
    return text;
  }
  if (found == json.end()) return refused(fmt::format("the object has no field '{}'", name));
  if (!found->is_string()) return refused(fmt::format("field '{}' is a {}, not a string", name, found->type_name()));
  std::string& text = found->get_ref<std::string&>();
  if (takes) return std::move(text);
  return text;
}

}  // namespace

Result<bool> read_json_record(std::string_view record, const RecordFilter* filter, JsonField& field, JsonField& target,
                              const Where& where, std::string& text, std::string& target_text) {
  Json json = TRY(object_of(record, field.name, where));
  if (filter != nullptr && !TRY(is_kept(json, *filter, where))) return false;
  // A target that is a path may lead to the same text.
  const bool apart = target.name.empty() || (target.name != field.name && json.contains(target.name));
  text = TRY(text_at(json, field, where, apart));
  if (!target.name.empty()) target_text = TRY(text_at(json, target, where, true));
  return true;
}

}  // namespace systole
