#pragma once

#include "describe/graph/ops/ops.h"
#include "describe/spec/workload.h"

namespace systole {

// Elementwise, of x's type.
Value activate(ModelSpec::Activation activation, Value x);

}  // namespace systole
