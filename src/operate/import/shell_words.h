#pragma once
// A script of shell, or a pasted line, as its commands and their words, read and never run. It knows what somebody
// pastes: words with quotes and expansions, lists joined by newline, ';', '&&', '||', '|' and '&', redirections, and
// assignments. What is a program of the shell's own (if, for, functions, here-documents) is refused by its line.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct ShellWord {
  std::string text;      // without quotes; expansions as they stand
  std::string raw;       // as it was written
  bool expands = false;  // holds $X, $(...), `...`, or a '~' or pattern outside of quotes
};

struct ShellCommand {
  std::vector<std::pair<std::string, ShellWord>> assignments;  // in front of the words, or alone
  std::vector<ShellWord> words;
  std::vector<std::string> redirections;  // as they were written: "2>&1", "> log"
  std::string before;   // what joins it to the command before: "" (a new line), ";", "&&", "||", "|", "&"
  bool behind = false;  // started with '&', in the background
  int line = 1;

  std::string raw() const;  // its words and assignments as they were written, one space between
};

// `file` is for messages. Errors: invalid (a quote that does not end), unsupported (what is refused), at their line.
Result<std::vector<ShellCommand>> read_shell(std::string_view text, const std::string& file);

// Where the first no-break space stands, which looks like a space and ends no word; npos: there is none.
std::size_t find_hard_space(std::string_view text);

// The words of a line that no shell reads, such as one of #SBATCH: quotes count, nothing else. Errors: invalid.
Result<std::vector<ShellWord>> read_plain_words(std::string_view line, const Where& where);

}  // namespace systole
