#pragma once
// The alphabet in which byte-level BPE vocabularies are written (GPT-2's encoder.py, `bytes_to_unicode`): a visible
// character for each byte. The printable bytes of Latin-1 stand for themselves; the others, in order, are U+0100 and
// on. "Ġ" is the space. Private to this folder.

#include <optional>
#include <string>
#include <string_view>

namespace systole {

// The character of a byte, as UTF-8.
std::string letter_of(unsigned char byte);
// The bytes that a word of the alphabet spells; nothing when a character is not of the alphabet.
std::optional<std::string> spelled_by(std::string_view letters);

}  // namespace systole
