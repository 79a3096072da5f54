#pragma once
// The device memory that a stack needs for a Program: the Program's arena, plus the stack's own parts by name.

#include <string>
#include <utility>
#include <vector>

#include "describe/program/program.h"
#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"

namespace systole {

// The parts that do not depend on a stack's numbers.
struct MemoryParts {
  Bytes arena;
  Bytes copies;  // bf16 parameters, plus f32 where the optimizer's state lies, minus f32 everywhere; may be negative
  Bytes scores;  // of unfused attention
  Bytes activations;             // of the arena: residuals, activations, workspace
  std::int64_t logits = 0;       // elements
  std::int64_t logits_held = 0;  // of the previous microbatch, while the next loss is computed
};
MemoryParts memory_parts(const Program& program, const KernelChoice& kernels);
// Only copies, scores and logits, for a Program without offsets.
MemoryParts placeless_memory(const Program& program, const KernelChoice& kernels);

// The fraction of a device's memory that a plan may use. With less left, allocators retry again and again, then fail.
// Set on the points of nanotron's sweep that ran and that crashed (docs/accuracy.md): steps measured at 70 of 80 GiB
// and more took 2.7 to 10 times as long as comparable ones.
constexpr double kUsableMemory = 0.84;

struct DeviceMemory {
  // "arena", "copies", "scores", "logits", "loss held", "fragments", "context"; none below 0. If the stack needs less
  // for parameters than the Program, the difference is subtracted from "arena".
  std::vector<std::pair<std::string, Bytes>> terms;
  Bytes total() const;
};
DeviceMemory device_memory(const MemoryParts& parts, const StackProfile& stack);
DeviceMemory device_memory(const Program& program, const KernelChoice& kernels, const StackProfile& stack);

}  // namespace systole
