#pragma once
// How a module is to be written where there is a choice.

#include <cstdint>

namespace systole::stablehlo {

// Attention in blocks of queries and keys: lengths of up to `length` are one block; longer ones are cut into multiples
// of `tile`, which is the lanes of a TPU's vectors and the side of its matrix unit. A step works on as many heads as
// keep its scores within `scores` elements.
struct AttentionBlocks {
  std::int64_t length = 512, tile = 128;
  std::int64_t scores = std::int64_t{1} << 22;  // 16 MiB of f32
};

// blocked: by AttentionBlocks, everywhere. cudnn: by cuDNN's fused kernels, for NVIDIA, where they take the call, else
// blocked. Module::notes says which it became, and why.
enum class AttentionKind { blocked, cudnn };

struct LowerOptions {
  bool unroll = false;         // a repeat as one body after the other, else as a loop
  bool wide_products = false;  // Builder::widen_products
  AttentionKind attention = AttentionKind::blocked;
  AttentionBlocks attention_blocks;
};

}  // namespace systole::stablehlo
