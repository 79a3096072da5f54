#include "execute/serve/text_bits.h"

#include <cmath>
#include <numbers>

namespace systole {

Result<TextBits> bits_of(Engine& engine, const Tokenizer& tokenizer, std::span<const std::int32_t> tokens) {
  TextBits total;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    total.bytes += static_cast<std::int64_t>(tokenizer.bytes_of(tokens[i]).size());
  if (total.bytes == 0) {
    return error(ErrorKind::invalid, "the text has no byte that a model could predict")
        .hinted("take a longer text, of some hundred words");
  }
  const std::span<const std::int32_t> predicted = tokens.subspan(1);
  total.tokens = static_cast<std::int64_t>(predicted.size());
  engine.begin(0, 0);
  const std::span<const float> scores = TRY(engine.score(0, tokens.first(predicted.size()), predicted));
  for (const float score : scores) total.bits -= double{score} / std::numbers::ln2;
  if (std::isfinite(total.bits)) return total;
  return error(ErrorKind::invalid, "the model's logits are not finite")
      .hinted("its run diverged, or its file is damaged; take another checkpoint or file");
}

}  // namespace systole
