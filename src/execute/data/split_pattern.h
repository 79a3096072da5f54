#pragma once
// The regular expression that cuts a text into words before byte-level BPE: what it matches and what lies between the
// matches are words (`tokenizers` calls this Split, Isolated). PCRE2, compiled to machine code where it can be.
//
// tokenizer.json's patterns are written for Oniguruma with Ruby's syntax. Most means the same here; what does not is
// translated (\s, \d, script names) or refused by name (\w, \b, anchors, nested classes, {,n}, verbs, flags other than
// i, …), so that no pattern is taken to mean something else. Private to this folder.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

struct TextSpan {
  std::size_t begin = 0, end = 0;
};

// Immutable; any number of threads, each with a Matcher of its own.
class SplitPattern {
 public:
  // Errors: unsupported, naming the part that is not understood or differs, or that matches nothing.
  static Result<SplitPattern> compile(std::string_view regex);
  // The text itself, as it stands.
  static Result<SplitPattern> literal(std::string_view text);

  class Matcher {
   public:
    explicit Matcher(const SplitPattern& pattern);
    // The first match in text[from..]; an empty span at the end of the text when there is none.
    // REQUIRES: `text` is UTF-8, and `from` is where a character begins. Errors: Failure, unsupported, when the pattern
    // needs more steps than PCRE2 allows.
    TextSpan next(std::string_view text, std::size_t from);

   private:
    struct Free {
      void operator()(void* data) const;
    };
    std::shared_ptr<const void> code_;
    std::unique_ptr<void, Free> data_;
    bool jit_;
  };

 private:
  std::shared_ptr<const void> code_;
  bool jit_ = false;
};

// Oniguruma's pattern as PCRE2's. Errors: unsupported.
Result<std::string> translate_pattern(std::string_view regex);

}  // namespace systole
