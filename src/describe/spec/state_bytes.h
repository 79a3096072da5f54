#pragma once
// What a training run keeps and saves: the master copy of its parameters, and the optimizer's moments of those that are
// trained. Both are in train.precision.parameter; frozen parameters have no moments.

#include <cstdint>

#include "describe/spec/workload.h"
#include "ground/base/units.h"

namespace systole {

std::int64_t moments_of(const OptimizerSpec& optimizer);  // of each trained parameter
// Of a checkpoint before compression. `trainable`: of the parameters.
Bytes state_bytes(std::int64_t parameters, std::int64_t trainable, const TrainSpec& train);

}  // namespace systole
