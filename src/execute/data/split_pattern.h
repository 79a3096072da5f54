#pragma once
// The regular expression that splits a text into words before byte-level BPE. The matches and the stretches between
// them are words (Split, Isolated in `tokenizers`). Uses PCRE2, with JIT compilation if available.
//
// tokenizer.json's patterns are in Oniguruma's Ruby syntax. Most of it has the same meaning in PCRE2. The rest is
// translated (\s, \d, script names) or refused by name (\w, \b, anchors, nested classes, {,n}, verbs, flags other than
// i, …), so that no pattern silently changes its meaning. Private to this folder.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

struct TextSpan {
  std::size_t begin = 0, end = 0;
};

// Immutable; thread-safe, with one Matcher per thread.
class SplitPattern {
 public:
  // Errors: unsupported, naming the part that is not understood, differs, or matches nothing.
  static Result<SplitPattern> compile(std::string_view regex);
  // Matches the text literally.
  static Result<SplitPattern> literal(std::string_view text);

  class Matcher {
   public:
    explicit Matcher(const SplitPattern& pattern);
    // The first match in text[from..]; an empty span at the end of the text if there is none.
    // REQUIRES: `text` is UTF-8, and `from` is the start of a character. Errors: Failure(unsupported) if the pattern
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

// Translates Oniguruma's syntax to PCRE2's. Errors: unsupported.
Result<std::string> translate_pattern(std::string_view regex);

}  // namespace systole
