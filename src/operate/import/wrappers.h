#pragma once
// Wrappers: programs that start the program named in their arguments: `uv run`, `conda run`, `env`, `sudo`, `numactl`,
// `bash -c`. The inner program is the workload's. A wrapper stays before it, or is removed if the agent does its work.

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
  std::vector<ShellWord> words;                              // the inner program; empty: none
  std::vector<ShellWord> kept;                               // wrappers that stay before it
  std::vector<LeftOut> gone;                                 // removed wrappers, with the reason
  std::vector<std::pair<std::string, ShellWord>> variables;  // set by `env` or `sudo`
  std::optional<ShellWord> script;                           // of `bash -c`; then `words` are that unchanged command
  bool login = false;                                        // bash is a login shell
  bool sudo = false;                                         // runs as another user
  bool bare = false;                                         // without the agent's environment
  bool wrapped() const { return !kept.empty() || !gone.empty() || !variables.empty() || script || sudo; }
};

// Removes all wrappers. Words without a wrapper are returned unchanged.
Unwrapped unwrap(std::span<const ShellWord> words);

// The program's name in a word: without folders, `$(which X)` as X.
std::string program_name(const ShellWord& word);

}  // namespace systole
