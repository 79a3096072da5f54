#pragma once
// Token masking for masked language models (Devlin et al., arXiv:1810.04805, section 3.1). A token is drawn with
// probability `share`; of the drawn ones, a fraction `hidden` becomes the mask, `random` any token of text, and the
// rest is unchanged. The random bits depend on (seed, epoch, row of the epoch, position), so neither a restart nor the
// assignment of rows to readers changes a label.

#include <cstdint>
#include <span>

namespace systole {

// 0, the tokenizer's unk, which no text is encoded to.
constexpr std::int32_t kMaskToken = 0;

struct Masking {
  double share = 0.15, hidden = 0.8, random = 0.1;
  std::uint64_t seed = 0;
  std::int32_t eos = 2;                // never drawn
  std::int32_t first = 3, end = 2048;  // tokens of text: [first, end)
};

// Masks the drawn ones of a row's `tokens`; `labels` gets their original tokens, and -1 elsewhere. `segments`: 0 in
// padding, where nothing is drawn. Returns the number of labels. REQUIRES: equal sizes.
std::int64_t mask_row(const Masking& masking, std::int64_t epoch, std::int64_t row,
                      std::span<const std::int32_t> segments, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> labels);

}  // namespace systole
