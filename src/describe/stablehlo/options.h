#pragma once
// Options of lowering.

#include <cstdint>

namespace systole::stablehlo {

// Blocks of attention: a length of up to `length` is one block; longer ones are split into multiples of `tile`, the
// lane count of a TPU's vectors and the side of its matrix unit. One step processes as many heads as keep its scores
// within `scores` elements.
struct AttentionBlocks {
  std::int64_t length = 512, tile = 128;
  std::int64_t scores = std::int64_t{1} << 22;  // 16 MiB of f32
};

// blocked: by AttentionBlocks, on every device. cudnn: by cuDNN's fused kernels, for NVIDIA, where they support the
// call, else blocked. Module::notes has the choice and the reason.
enum class AttentionKind { blocked, cudnn };

struct LowerOptions {
  bool unroll = false;         // write a repeat as a sequence of bodies, not as a loop
  bool wide_products = false;  // Builder::widen_products
  AttentionKind attention = AttentionKind::blocked;
  AttentionBlocks attention_blocks;
};

}  // namespace systole::stablehlo
