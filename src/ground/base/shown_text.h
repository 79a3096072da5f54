#pragma once
// Makes foreign text (a manifest, a server's message, a file name, a line of a user's program) safe to show: it moves
// no cursor, changes no title and reveals no password.

#include <string>
#include <string_view>

namespace systole {

// Escapes control characters and those that change text direction as "\u001b", and bytes that are not UTF-8 as "\x9b".
// Newlines and tabs stay. `inked`: the codes of kInkCodes stay too. Inside a JSON string the result stands for the same
// text, if all of it was UTF-8.
std::string printable(std::string_view text, bool inked = false);
// For text that comes in pieces, where a character may be cut in two: bytes that are not valid UTF-8 on their own stay.
std::string printable_piece(std::string_view text);

// The codes with which a Printer sets and resets colors.
inline constexpr std::string_view kInkCodes[] = {"\x1b[0m",  "\x1b[1m",  "\x1b[2m",   "\x1b[31m",
                                                 "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};

// Replaces "https://USER:PASSWORD@HOST/" with "https://***@HOST/" everywhere in the text.
std::string without_passwords(std::string_view text);

}  // namespace systole
