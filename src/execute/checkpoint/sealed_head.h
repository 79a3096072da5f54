#pragma once
// What is told of a sealed text (sealed_text.h) before anything of it but its first line is read as JSON: a stranger
// may have written the rest.

#include "execute/checkpoint/sealed_text.h"

namespace systole::checkpoint {

// That it is of this format, undamaged and of a version that is read here. Errors: corrupt (not of this format, another
// hash), unsupported (a newer version).
Status check_head(const TextKind& kind, std::string_view text, std::string_view file);

}  // namespace systole::checkpoint
