#pragma once
// How attention is written.

#include <cstdint>

namespace systole::stablehlo {

// Lengths of up to `length` are one block; longer ones are cut into multiples of `tile`, which is the lanes of a TPU's
// vectors and the side of its matrix unit. A step works on as many heads as keep its scores within `scores` elements.
struct AttentionBlocks {
  std::int64_t length = 512, tile = 128;
  std::int64_t scores = std::int64_t{1} << 22;  // 16 MiB of f32
};

}  // namespace systole::stablehlo
