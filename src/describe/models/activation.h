#pragma once

#include "describe/ops/ops.h"
#include "describe/spec/families/parts.h"

namespace systole {

// Elementwise; the result has x's type.
Value activate(Activation activation, Value x);

}  // namespace systole
