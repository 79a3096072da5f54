#pragma once
// The text of one answer as its tokens come: what may be sent at once is whole characters that cannot become part of a
// stop string. Stop strings may cross tokens; text from the first stop string on is never handed out.
//
//   AnswerText text(tokenizer, {"\n\n"});
//   send(text.add(token)); if (text.stopped()) ...      // per token
//   send(text.rest());                                  // at the end: what was held back

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/tokenizer.h"

namespace systole {

class AnswerText {
 public:
  // `skip_space`: leading spaces of the answer are not part of it. Ignored are empty stop strings, and what is complete
  // within the first `min_tokens` tokens. `spelled`: special tokens that spell their names.
  AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stop, bool skip_space = false,
             std::int64_t min_tokens = 0, std::vector<SpecialToken> spelled = {});

  // The text that this token makes certain; may be empty.
  std::string add(std::int32_t token);
  // The text that was held back, once no token follows; empty if stopped. An incomplete character becomes U+FFFD.
  std::string rest();
  bool stopped() const { return stopped_; }
  // Of the text of all tokens so far, held back or not.
  std::int64_t characters() const { return characters_; }

 private:
  std::string take(std::size_t bytes);
  std::size_t certain() const;

  Tokenizer tokenizer_;
  std::vector<std::string> stop_;
  std::vector<SpecialToken> spelled_;
  std::string held_;  // not handed out yet
  bool skips_, stopped_ = false;
  std::int64_t min_tokens_, tokens_ = 0, characters_ = 0;
};

}  // namespace systole
