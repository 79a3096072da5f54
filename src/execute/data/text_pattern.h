#pragma once
// A regular expression that takes a part out of a text, such as the number at the end of an answer:
//
//   const TextPattern pattern = TRY(TextPattern::compile(R"(answer is (-?\d+))"));
//   TRY(pattern.first("so the answer is 42."));   // "42"
//
// The syntax is PCRE2's, which has that of Python's `re` but for rare parts; letters, digits and spaces are Unicode's.
// A search takes bounded steps and memory. Immutable; thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

class TextPattern {
 public:
  // Errors: invalid, with the reason and the offset in `regex`.
  static Result<TextPattern> compile(std::string_view regex);

  // Of the first match the first group that is not empty, or without groups the match, as the regex filter of
  // lm-evaluation-harness. Nothing: no match. Errors: invalid: the search takes more steps than PCRE2 allows.
  // REQUIRES: `text` is UTF-8.
  Result<std::optional<std::string>> first(std::string_view text) const;

 private:
  std::string regex_;
  std::shared_ptr<const void> code_;
};

}  // namespace systole
