#pragma once
// The arguments of a template's filters, methods and functions, as Jinja and Python take them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "execute/serve/chat/template_value.h"
#include "ground/base/error.h"

namespace systole::chat {

// Throws Failure, as all here do for what they cannot take.
[[noreturn]] void wrong(const std::string& what, ErrorKind kind = ErrorKind::invalid);

const std::string& text_of(const Value& value, std::string_view what);
// What a loop goes over: the items of a list, the keys of a map, the characters of a text.
List items_of(const Value& value, std::string_view what);
Value pairs_of(const Value& value, std::string_view what);  // of a map: (key, entry)
std::string joined(const List& items, const std::string& by);

std::optional<std::string> set_of(const Arguments& arguments);  // of characters to strip; nothing: white space
std::int64_t integer_argument(const Arguments& arguments, std::size_t at, std::string_view name,
                              std::int64_t otherwise);
std::string text_argument(const Arguments& arguments, std::size_t at, std::string_view name, std::string otherwise);

}  // namespace systole::chat
