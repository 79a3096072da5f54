#pragma once
// Variables set by a script and used in a launcher's words: LAUNCHER="torchrun --nnodes=2".

#include <optional>
#include <string>
#include <vector>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// The value of `$NAME` (split at blanks) or `"$NAME"` (one word), as words; nothing if it is another word, or the
// script does not set it.
std::optional<std::vector<ShellWord>> words_of_variable(const ShellWord& word, const Draft& draft);
// Whether it is an unquoted `$NAME`, which may stand for several words.
bool is_variable(const ShellWord& word);
// The word with the script's variables substituted, if they are plain text.
ShellWord with_variables(ShellWord word, const Draft& draft);

}  // namespace systole
