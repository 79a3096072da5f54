#pragma once
// Text of others (a manifest, a server's message, a file's name, a line of somebody's program) as it may be shown to
// people: it moves no cursor, changes no title and gives away no password.

#include <string>
#include <string_view>

namespace systole {

// Control characters and those that turn the direction of text as "\u001b", bytes that are no UTF-8 as "\x9b".
// Newlines and tabs stay. `inked`: so do those of kInkCodes. Inside of a JSON string the result stands for the
// same text, when all of it was UTF-8.
std::string printable(std::string_view text, bool inked = false);
// Of text that comes in pieces, where a character may be cut in two: bytes that are no UTF-8 by themselves stay.
std::string printable_piece(std::string_view text);

// The codes by which a Printer gives text a colour and takes it back.
inline constexpr std::string_view kInkCodes[] = {"\x1b[0m",  "\x1b[1m",  "\x1b[2m",   "\x1b[31m",
                                                 "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};

// "https://USER:PASSWORD@HOST/" as "https://***@HOST/", wherever in the text it stands.
std::string without_passwords(std::string_view text);

}  // namespace systole
