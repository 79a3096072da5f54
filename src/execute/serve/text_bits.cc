#include "execute/serve/text_bits.h"

#include <array>
#include <cmath>
#include <numbers>

#include "execute/serve/logprobs.h"

namespace systole {

Result<TextBits> bits_of(Engine& engine, const Tokenizer& tokenizer, std::span<const std::int32_t> tokens) {
  TextBits total;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (i == 1) TRY(engine.prefill(0, tokens.first(1)));
    if (i > 1) TRY(engine.decode(std::array{Engine::Next{0, tokens[i - 1]}}));
    const double logprob = token_logprobs(engine.logits(0), tokens[i], 0).chosen.logprob;
    if (std::isnan(logprob)) {
      return error(ErrorKind::invalid, "the model's logits are not finite after {} tokens", i)
          .hinted("its run diverged, or its file is damaged; take another checkpoint or file");
    }
    total.bits -= logprob / std::numbers::ln2;
    total.bytes += static_cast<std::int64_t>(tokenizer.bytes_of(tokens[i]).size());
    ++total.tokens;
  }
  if (total.bytes > 0) return total;
  return error(ErrorKind::invalid, "the text has no byte that a model could predict")
      .hinted("take a longer text, of some hundred words");
}

}  // namespace systole
