#pragma once
// Parses a shell script, or a pasted line, into commands and their words, without executing it. Supports what is
// usually pasted: words with quotes and expansions, lists joined by newline, ';', '&&', '||', '|' and '&',
// redirections, and assignments. Shell programming (if, for, functions, here-documents) is refused, with its line.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct ShellWord {
  std::string text;      // without quotes; expansions unchanged
  std::string raw;       // as written
  bool expands = false;  // contains $X, $(...), `...`, or an unquoted '~' or pattern
};

struct ShellCommand {
  std::vector<std::pair<std::string, ShellWord>> assignments;  // before the words, or alone
  std::vector<ShellWord> words;
  std::vector<std::string> redirections;  // as written: "2>&1", "> log"
  std::string before;   // separator from the previous command: "" (a new line), ";", "&&", "||", "|", "&"
  bool behind = false;  // run in the background with '&'
  int line = 1;

  std::string raw() const;  // its words and assignments as written, separated by one space
};

// `file` is for messages. Errors: invalid (an unterminated quote), unsupported (refused constructs), at their line.
Result<std::vector<ShellCommand>> read_shell(std::string_view text, const std::string& file);

// The position of the first no-break space, which looks like a space but does not end a word; npos: none.
std::size_t find_hard_space(std::string_view text);

// The words of a line without shell syntax, such as #SBATCH: only quotes have a meaning. Errors: invalid.
Result<std::vector<ShellWord>> read_plain_words(std::string_view line, const Where& where);

}  // namespace systole
