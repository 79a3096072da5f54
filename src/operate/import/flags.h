#pragma once
// Flags of a command line against a table that says of each one what becomes of it: a key, a reason why it is left out,
// or a reason why the whole is refused. A flag that is in no table is an error, so that nothing is passed over; of a
// line that stays behind as a whole it is told.

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

struct SeenFlag {
  std::string_view name;  // of its table
  FlagValue value;
  bool expands = false;       // its value is known only where it runs
  std::string_view why = "";  // of its table
};

struct FlagStyle {
  std::string_view program;               // for messages
  bool words_end_them = true;             // the first word that is no flag is the program's, and all behind it
  bool shortened = false;                 // a beginning that one name alone has says that name, as getopt takes it
  std::vector<SeenFlag>* seen = nullptr;  // where those that were there go, known ones alone
  bool tells = true;                      // of those that are left out; else who looks at `seen` does
  std::string_view passes = "";           // why one that is in no table is left out; empty: it is an error
};

// From `words[at]` on. Returns the words that are no flags. Notes in the draft what is wrong with others.
std::vector<ShellWord> read_flags(std::span<const ShellWord> words, std::initializer_list<std::span<const Flag>> tables,
                                  const FlagStyle& style, Draft& draft);

// A whole number of `least` or more. Notes what is wrong.
std::optional<std::int64_t> count_of(Draft& draft, const FlagValue& value, std::int64_t least = 1,
                                     std::int64_t most = 1'000'000'000);
// "2", or "2:8" with `between` ':'.
std::optional<CountRange> range_of(Draft& draft, const FlagValue& value, char between);
// "a=1,b=2" as pairs; a part without '=' has an empty value.
std::vector<std::pair<std::string, std::string>> pairs_of(std::string_view text, char between = ',');

}  // namespace systole
