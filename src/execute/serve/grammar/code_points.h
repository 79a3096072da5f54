#pragma once
// Sets of Unicode code points, and the bytes of UTF-8 that spell them: plain, or as a string of JSON has them.

#include <cstdint>
#include <vector>

#include "execute/serve/grammar/automaton.h"

namespace systole::grammar {

struct CodeRange {
  std::uint32_t first = 0, last = 0;  // both included
};

// Ascending, disjoint and not adjacent, without surrogates.
class CodePoints {
 public:
  CodePoints() = default;
  explicit CodePoints(std::vector<CodeRange> ranges);
  static CodePoints all() { return CodePoints({{0, 0x10FFFF}}); }

  const std::vector<CodeRange>& ranges() const { return ranges_; }
  CodePoints without(const CodePoints& other) const;

 private:
  std::vector<CodeRange> ranges_;
};

// How a code point is spelled. json: within a string of JSON, where `"`, `\` and those below U+0020 are escaped, as
// `\n` or `\u001f`, and no others are.
enum class Spelling { plain, json };

// Adds the spellings of one code point of the set, between the states. An empty set adds nothing.
void add_code_point(AutomatonBuilder& builder, AutomatonBuilder::State from, const CodePoints& set, Spelling spelling,
                    AutomatonBuilder::State to);

}  // namespace systole::grammar
