#pragma once
// What Python's str and Jinja's filters do with texts in chat templates. Letters outside ASCII have no case here, unlike
// in Python. Each throws Failure(does_not_fit) if what it makes becomes too large (template_value.h).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/chat/template_value.h"

namespace systole::chat {

// Characters of a text: Python counts and cuts by them.
std::vector<std::string_view> characters(std::string_view text);
std::int64_t count_of_characters(std::string_view text);

// Without the characters of `set` at its ends; without a set, without white space.
std::string stripped(std::string_view text, const std::optional<std::string>& set, bool left, bool right);
std::string cased(std::string text, bool upper);
std::string capitalized(std::string text);
// As str.title() has it; as the filter: only after white space and opening brackets a letter is large.
std::string titled(const std::string& text, bool filter);
// In linear time, which std::string::find has not.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);
// `count`: at most so many times; -1: each time. Throws Failure(invalid) for an empty `from`.
std::string replaced(const std::string& text, const std::string& from, const std::string& to, std::int64_t count);
// By a text or by white space, at most `most` times (-1: each time), from the left or the right. Throws
// Failure(invalid) for an empty `by`, unsupported for white space from the right.
List split(const std::string& text, const std::optional<std::string>& by, std::int64_t most, bool from_right);
// The number that the whole text is.
std::optional<double> number_in(const std::string& text);
// `first`: the first line, too; `blank`: empty lines, too.
std::string indented(const std::string& text, std::size_t width, bool first, bool blank);
std::string escaped(const std::string& text);  // for HTML

}  // namespace systole::chat
