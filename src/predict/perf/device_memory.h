#pragma once
// The memory that a stack needs for a Program on a device: the Program's arena, and by name what a stack has besides.

#include <string>
#include <utility>
#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"

namespace systole {

// What of it no number of a stack touches.
struct MemoryParts {
  Bytes arena;
  Bytes copies;       // parameters in bf16, and in f32 only where the optimizer's state lies, less f32 everywhere
  Bytes scores;       // of attention that is not fused
  Bytes activations;  // of the arena what forward keeps and what functions need on the way
  std::int64_t logits = 0;
  std::int64_t logits_held = 0;  // of the microbatch before, while the next one's loss is made
};
MemoryParts memory_parts(const Program& program, const KernelChoice& kernels);
// Of a Program without places: copies, scores and logits.
MemoryParts placeless_memory(const Program& program, const KernelChoice& kernels);

// Of a device's memory what may be planned to be taken: allocators that are left less try again and again, and end. Set
// on the points of nanotron's sweep that ran and that crashed (docs/accuracy.md): of 80 GiB, steps that were measured
// at 70 and more took 2.7 to 10 times as long as others of their kind.
constexpr double kUsableMemory = 0.84;

struct DeviceMemory {
  // "arena", "copies", "scores", "logits", "loss held", "fragments", "context"; none below 0. Where the stack needs
  // less for parameters than the Program, "arena" is by so much less than the Program's.
  std::vector<std::pair<std::string, Bytes>> terms;
  Bytes total() const;
};
DeviceMemory device_memory(const MemoryParts& parts, const StackProfile& stack);
DeviceMemory device_memory(const Program& program, const KernelChoice& kernels, const StackProfile& stack);

}  // namespace systole
