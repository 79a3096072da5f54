#pragma once
// UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF): checks, and code points.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace systole {

// The length of the valid sequence at the front of `text`, 1 to 4 bytes; 0 if there is none.
std::size_t utf8_length(std::string_view text);

// The offset of the first byte outside a valid sequence.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Replaces each byte outside a valid sequence by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// Appends a code point. REQUIRES: it is none above U+10FFFF.
void append_utf8(std::string& text, std::uint32_t code);

// The code point of the valid sequence at the front of `text`, and its length. REQUIRES: utf8_length(text) > 0.
std::pair<std::uint32_t, std::size_t> code_point_at(std::string_view text);

}  // namespace systole
