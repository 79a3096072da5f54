#pragma once
// Checks of a sealed text (sealed_text.h) that come before its JSON is parsed: the text is untrusted, and only its
// first line is read.

#include "execute/checkpoint/sealed_text.h"

namespace systole::checkpoint {

// Checks the format, the hash and the version. Errors: corrupt (another format, wrong hash), unsupported (a newer
// version).
Status check_head(const TextKind& kind, std::string_view text, std::string_view file);

}  // namespace systole::checkpoint
