#pragma once
// FLOPs of matrix products, by their shapes. The TPU compiler turns them into convolutions.

#include "ground/pjrt/hlo_module.h"

namespace systole::prove {

// 2 for each multiply-add of a dot or a convolution; 0 for anything else. `left`: its first operand, may be null.
double product_flops(const pjrt::HloInstruction& product, const pjrt::HloInstruction* left);

}  // namespace systole::prove
