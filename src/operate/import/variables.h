#pragma once
// Variables that a script gives itself, where a launcher's words name them: LAUNCHER="torchrun --nnodes=2".

#include <optional>
#include <string>
#include <vector>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// The words that `$NAME` (cut at blanks) or `"$NAME"` (one word) stands for; nothing where it is another word, or the
// script does not say it.
std::optional<std::vector<ShellWord>> words_of_variable(const ShellWord& word, const Draft& draft);
// Whether it is `$NAME` without quotes, which may stand for several words.
bool is_variable(const ShellWord& word);
// The word with what the script says put in, as far as it is plain text.
ShellWord with_variables(ShellWord word, const Draft& draft);

}  // namespace systole
