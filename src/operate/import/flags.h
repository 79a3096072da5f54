#pragma once
// Flags of a command line against a table that says of each one what becomes of it: a key, a reason why it is left out,
// or a reason why the whole is refused. A flag that is in no table is an error, so that nothing is passed over.

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
  enum class Takes { nothing, value, perhaps };  // perhaps: only behind '='
  std::string_view name;                         // "nodes"; '-' and '_' are the same
  char letter = '\0';
  Takes takes = Takes::value;
  void (*read)(Draft&, const FlagValue&) = nullptr;  // null: left out
  std::string_view why = "";                         // it is left out, or refused
  bool refused = false;
};

struct FlagStyle {
  std::string_view program;    // for messages
  bool words_end_them = true;  // the first word that is no flag is the program's, and all behind it
};

// From `words[at]` on. Returns the words that are no flags. Notes in the draft what is wrong with others.
std::vector<ShellWord> read_flags(std::span<const ShellWord> words, std::initializer_list<std::span<const Flag>> tables,
                                  const FlagStyle& style, Draft& draft);

// A whole number of `least` or more. Notes what is wrong.
std::optional<std::int64_t> count_of(Draft& draft, const FlagValue& value, std::int64_t least = 1);
// "2", or "2:8" with `between` ':'.
std::optional<CountRange> range_of(Draft& draft, const FlagValue& value, char between);
// "a=1,b=2" as pairs; a part without '=' has an empty value.
std::vector<std::pair<std::string, std::string>> pairs_of(std::string_view text, char between = ',');

}  // namespace systole
