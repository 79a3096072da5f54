#pragma once
// Initializes a run: parameters from their Init, state to zero. The random bits of an element depend only on its
// parameter's name and its index in it, so no layout changes them.

#include <cstdint>

#include "execute/runtime/executor.h"
#include "ground/tensor/buffer.h"

namespace systole {

HostTensor initial_value(const Parameter& parameter, std::uint64_t seed);

// Writes this device's part of every parameter, and zeroes every state value.
Status initialize(Executor& executor, std::uint64_t seed, std::int64_t device = 0);

}  // namespace systole
