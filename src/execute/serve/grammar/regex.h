#pragma once
// Regular expressions as a part of an automaton. Read is the common part of ECMAScript's, Python's and RE2's syntax:
// literals, `.`, classes, `\d \w \s` (of ASCII) and their complements, `\t \n \r \f \v \0 \xHH \uHHHH`, groups, `|`,
// `* + ? {n} {n,} {n,m}`, and `^` and `$` at the ends of an alternative of the whole. A lazy `?` changes nothing, since
// only the language matters. Refused by name: back references, look-around, `\b`, `\p{…}`, flags.

#include <string_view>
#include <vector>

#include "execute/serve/grammar/code_points.h"

namespace systole::grammar {

class Regex {
 public:
  // Errors: invalid (syntax; more than kMostText bytes; nested deeper than kMostDepth), unsupported (a construct); with
  // its place in the pattern.
  static Result<Regex> parse(std::string_view pattern);

  enum class Match {
    whole,   // the text, as vLLM's guided_regex
    search,  // a part of the text unless the pattern has ^ and $, as JSON Schema's `pattern`
  };
  // Adds the language behind `from`, each code point as spelled; returns its end. A builder that is full stops early.
  AutomatonBuilder::State add(AutomatonBuilder& builder, AutomatonBuilder::State from, Spelling spelling,
                              Match match) const;

  static constexpr std::size_t kMostText = 1 << 14;
  static constexpr int kMostDepth = 100;
  static constexpr int kMostRepeats = 10'000;  // n and m of {n,m}

 private:
  friend class RegexParser;
  struct Part {
    enum class Kind { set, sequence, choice, repeat };
    Kind kind = Kind::sequence;
    CodePoints set = {};               // of a set
    std::vector<std::size_t> of = {};  // parts_; of a repeat: one
    int least = 0, most = 0;           // of a repeat; most -1: no bound
  };
  struct Alternative {
    std::size_t part = 0;
    bool at_begin = false, at_end = false;  // ^ and $
  };
  class Adder;
  std::vector<Part> parts_;
  std::vector<Alternative> alternatives_;
};

}  // namespace systole::grammar
