#pragma once
// Programs that start the program that their own line names: `uv run`, `conda run`, `env`, `numactl`, `bash -c`. What
// they start is the workload's; what they do for it stays in front of it, or is the agent's and goes.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

struct Unwrapped {
  std::vector<ShellWord> words;                              // the program that is started; empty: none
  std::vector<ShellWord> kept;                               // wrappers that stay in front of it
  std::vector<LeftOut> gone;                                 // and those that do not, with the reason
  std::vector<std::pair<std::string, ShellWord>> variables;  // that `env` sets
  std::optional<ShellWord> script;                           // of `bash -c`; then `words` are that line as it stands
  bool login = false;                                        // that bash reads the profile
  bool bare = false;                                         // without the environment that the agent gives
  bool wrapped() const { return !kept.empty() || !gone.empty() || !variables.empty() || script; }
};

// Looks through all of them. What is no wrapper comes back as it is.
Unwrapped unwrap(std::span<const ShellWord> words);

// The name that a word starts a program by: without folders, `$(which X)` as X.
std::string program_name(const ShellWord& word);

}  // namespace systole
