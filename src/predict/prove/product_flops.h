#pragma once
// The arithmetic of matrix products, by their shapes. TPUs' compiler makes convolutions of them.

#include "ground/pjrt/hlo_module.h"

namespace systole::prove {

// 2 for each number multiplied and added: of a dot or a convolution; 0 of anything else. `left`: its first operand, may
// be null.
double product_flops(const pjrt::HloInstruction& product, const pjrt::HloInstruction* left);

}  // namespace systole::prove
