#pragma once
// The alphabet of byte-level BPE vocabularies (GPT-2's encoder.py, `bytes_to_unicode`): one visible character per byte.
// The printable bytes of Latin-1 stand for themselves; the others are, in order, U+0100 and following. "Ġ" is the
// space. Private to this folder.

#include <optional>
#include <string>
#include <string_view>

namespace systole {

// The character of a byte, as UTF-8.
std::string letter_of(unsigned char byte);
// The bytes of a word in this alphabet; nothing if a character is not in the alphabet.
std::optional<std::string> spelled_by(std::string_view letters);

}  // namespace systole
