#pragma once
// The gradient of attention, listed by attention_lowerings(). Private to this folder.

#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {

std::vector<Ssa> attention_grad_lowering(Builder& b, const NodeCall& call);

}  // namespace systole::stablehlo
