#pragma once
// Parses command-line flags by a table. Each flag sets a key, is left out with a reason, or makes the import fail with
// a reason. An unknown flag is an error, so nothing is silently ignored; in a line that is left out as a whole it is
// only reported.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

struct FlagValue {
  std::string text;
  std::string from;  // "--nodes=2"
};

struct Flag {
  enum class Takes { nothing, value, perhaps };  // perhaps: only after '='
  std::string_view name;                         // "nodes"; '-' and '_' are equivalent
  char letter = '\0';
  Takes takes = Takes::value;
  void (*read)(Draft&, const FlagValue&) = nullptr;  // null: left out
  std::string_view why = "";                         // why it is left out, or refused
  bool refused = false;
};

struct ParsedFlag {
  std::string name;  // from its table, with "no-" if negated
  FlagValue value;
  bool expands = false;       // its value is known only at run time
  std::string_view why = "";  // from its table
};

struct FlagStyle {
  std::string_view program;                 // for messages
  bool words_end_them = true;               // the first word that is not a flag, and all after it, are the program's
  bool negates = false;                     // accepts --no-X for each --X without a value
  bool shortened = false;                   // accepts unambiguous prefixes, like getopt
  std::vector<ParsedFlag>* seen = nullptr;  // collects known flags
  bool tells = true;                        // reports flags that are left out; otherwise the reader of `seen` does
  std::string_view passes = "";             // why unknown flags are left out; empty: they are errors
};

// Parses from `words[at]` on. Returns the words that are not flags. Notes errors in the draft.
std::vector<ShellWord> read_flags(std::span<const ShellWord> words, std::initializer_list<std::span<const Flag>> tables,
                                  const FlagStyle& style, Draft& draft);

// A whole number, at least `least`. Notes errors.
std::optional<std::int64_t> count_of(Draft& draft, const FlagValue& value, std::int64_t least = 1,
                                     std::int64_t most = 1'000'000'000);
// "2", or "2:8" with `between` ':'.
std::optional<CountRange> range_of(Draft& draft, const FlagValue& value, char between);
// "a=1,b=2" as pairs; a part without '=' has an empty value.
std::vector<std::pair<std::string, std::string>> pairs_of(std::string_view text, char between = ',');

}  // namespace systole
