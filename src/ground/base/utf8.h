#pragma once
// Whether bytes are UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace systole {

// Bytes of the valid sequence that `text` begins with, 1 to 4; 0 when it begins with none or is empty.
std::size_t utf8_length(std::string_view text);

// The offset of the first byte that belongs to no valid sequence.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Each byte that belongs to no valid sequence replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace systole
