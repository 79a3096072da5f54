#pragma once
// Rules of JSON's own grammar (RFC 8259) in an automaton, as they are written where an answer must conform:
//   between tokens: nothing, one space, or a newline and up to kMostIndent spaces or tabs; the latter not after `"key"`;
//   numbers: at most 16 digits before and after the point and 2 in the exponent, so that each reads back as finite;
//   strings: UTF-8, escapes as RFC 8259 has them, and surrogates only in pairs.
// Names of an object's own may come twice, as RFC 8259 does not forbid.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "execute/serve/grammar/automaton.h"
#include "execute/serve/grammar/code_points.h"
#include "ground/base/document.h"

namespace systole::grammar {

class JsonRules {
 public:
  using State = AutomatonBuilder::State;
  using Rule = AutomatonBuilder::Rule;
  static constexpr int kMostIndent = 32;

  explicit JsonRules(AutomatonBuilder& builder) : builder_(builder) {}

  // Each adds its text behind `from` and returns its end.
  State gap(State from);        // between tokens
  State colon(State from);      // after a name
  State string(State from);     // any
  State character(State from);  // one code point within a string
  State number(State from, bool negative = true);
  State value(State from);  // any
  State object(State from);
  State array(State from);
  // This value; members and items in its order.
  State literal(State from, const Node& value);
  // lowest <= value <= highest, without a sign before 0; nothing: 16 digits. REQUIRES: lowest <= highest.
  State integer(State from, std::optional<std::int64_t> lowest = {}, std::optional<std::int64_t> highest = {});
  // A name, with its quotes and without escapes, that is not empty and none of `names`.
  State other_name(State from, std::span<const std::string> names);

 private:
  enum Known { kGap, kString, kCharacter, kValue, kObject, kArray, kKnown };
  Rule rule(Known known);
  State finish(Known known, State begin);
  State digits(State from, int least, int most);
  State digits_between(State from, std::string_view lowest, std::string_view highest);
  State natural(State from, std::uint64_t lowest, std::uint64_t highest);
  State characters(State from);

  AutomatonBuilder& builder_;
  std::optional<Rule> rules_[kKnown];
};

}  // namespace systole::grammar
