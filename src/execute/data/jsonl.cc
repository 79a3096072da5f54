// JSON Lines: one object per line, its text in one field.

#include <nlohmann/json.hpp>

#include "execute/data/text_source.h"

namespace systole {
namespace {

using Json = nlohmann::json;

Error not_usable(const Where& where, std::string what, const std::string& field) {
  return error(ErrorKind::invalid, "{}", what)
      .at(Where(where))
      .hinted(fmt::format("each line is an object such as {{\"{}\": \"...\"}}; another field is chosen by `field:`",
                          field));
}

}  // namespace

Result<std::string> text_of_json(std::string_view record, const std::string& field, const Where& where) {
  Json json;
  try {
    json = Json::parse(record.begin(), record.end());
  } catch (const Json::parse_error& bad) {
    Where place = where;
    place.col = static_cast<int>(std::max<std::size_t>(bad.byte, 1));
    const bool cut = bad.byte > record.size();
    return not_usable(place, cut ? "the JSON record ends too early" : "not JSON", field);
  } catch (const Json::exception& bad) {  // a number out of range
    return not_usable(where, fmt::format("not JSON: {}", bad.what()), field);
  }
  if (!json.is_object()) return not_usable(where, fmt::format("a JSON {}, not an object", json.type_name()), field);
  const auto found = json.find(field);
  if (found == json.end()) return not_usable(where, fmt::format("the object has no field '{}'", field), field);
  if (!found->is_string()) {
    return not_usable(where, fmt::format("field '{}' is a {}, not a string", field, found->type_name()), field);
  }
  return std::move(found->get_ref<std::string&>());
}

}  // namespace systole
