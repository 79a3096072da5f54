#include "execute/serve/chat/template_arguments.h"

#include "execute/serve/chat/template_text.h"

namespace systole::chat {

void wrong(const std::string& what, ErrorKind kind) { fail(error(kind, "{}", what)); }

const std::string& text_of(const Value& value, std::string_view what) {
  if (!value.is_string()) wrong(fmt::format("{} of {}", what, value.type_name()));
  return value.text();
}

List items_of(const Value& value, std::string_view what) {
  List items;
  if (value.list() != nullptr) return *value.list();
  if (const Map* map = value.map()) {
    for (const auto& [key, entry] : *map) items.emplace_back(key);
  } else if (value.is_string()) {
    if (value.text().size() > kLargestList) wrong("a list becomes too large", ErrorKind::does_not_fit);
    for (const std::string_view character : characters(value.text())) items.emplace_back(character);
  } else if (!value.is_undefined()) {
    wrong(fmt::format("{} of {}", what, value.type_name()));
  }
  return items;
}

std::optional<std::string> set_of(const Arguments& arguments) {
  const Value* value = arguments.find(0, "chars");
  if (value == nullptr || value->is_none()) return std::nullopt;
  if (value->is_string() && value->text().size() > 1000) wrong("strip of too many characters", ErrorKind::does_not_fit);
  return text_of(*value, "strip");
}

std::string joined(const List& items, const std::string& by) {
  std::string result;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) result += by;
    result += items[i].shown();
    if (result.size() > kLargestText) wrong("a text becomes too large", ErrorKind::does_not_fit);
  }
  return result;
}

std::int64_t integer_argument(const Arguments& arguments, std::size_t at, std::string_view name,
                              std::int64_t otherwise) {
  const Value* value = arguments.find(at, name);
  if (value == nullptr || value->is_none()) return otherwise;
  if (!value->is<bool>() && !value->is<std::int64_t>())
    wrong(fmt::format("{} is {}, no whole number", name, value->type_name()));
  return value->integer();
}

std::string text_argument(const Arguments& arguments, std::size_t at, std::string_view name, std::string otherwise) {
  const Value* value = arguments.find(at, name);
  return value == nullptr || value->is_none() ? otherwise : text_of(*value, name);
}

Value pairs_of(const Value& value, std::string_view what) {
  List pairs;
  if (value.is_undefined()) return pairs;
  if (value.map() == nullptr) wrong(fmt::format("{} of {}", what, value.type_name()));
  for (const auto& [key, entry] : *value.map()) pairs.push_back(Value::tuple({Value(key), entry}));
  return pairs;
}

}  // namespace systole::chat
