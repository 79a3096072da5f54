#pragma once
// The memory that a stack needs for a Program on a device: the Program's arena, and by name what a stack has besides.

#include <string>
#include <utility>
#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"

namespace systole {

struct DeviceMemory {
  // "arena"; "copies": parameters in bf16, and those in f32 only where the optimizer's state lies; "scores": of
  // attention that is not fused; "fragments"; "context". A term may be below 0: what the stack needs less than the
  // Program.
  std::vector<std::pair<std::string, Bytes>> terms;
  Bytes total() const;
};
DeviceMemory device_memory(const Program& program, const KernelChoice& kernels, const StackProfile& stack);

}  // namespace systole
