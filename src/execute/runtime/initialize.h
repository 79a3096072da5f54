#pragma once
// Where a run begins: parameters from their Init, state zero. The random bits of an element belong to its parameter's
// name and its place in it, so no layout changes them.

#include <cstdint>

#include "execute/runtime/executor.h"
#include "ground/tensor/buffer.h"

namespace systole {

HostTensor initial_value(const Parameter& parameter, std::uint64_t seed);

// Writes what this device of the Program's mesh holds of every parameter, and zeroes every state value.
Status initialize(Executor& executor, std::uint64_t seed, std::int64_t device = 0);

}  // namespace systole
