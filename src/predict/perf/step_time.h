#pragma once
// The time of a training step on a software stack, from the step's parts. docs/concepts/step-time.md has the formulas
// and their sources.

#include <array>

#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"

namespace systole {

enum class StepShare {
  products,  // of all kinds
  attention,
  movement,  // memory-bound ops
  host,      // launch overhead: the device waits for the host
  tensor,    // exposed communication, by kind
  context,
  expert,
  parameters,
  gradients,
  handing_on,  // between stages
  bubble,
  update,
  fixed,  // per step, and for stragglers
};
constexpr int kNumStepShares = 13;
const char* name_of(StepShare share);  // "tensor"

struct StepTime {
  double seconds = 0;
  std::array<double, kNumStepShares> shares{};  // seconds, of the slowest stage; they add up to `seconds`
  double& operator[](StepShare s) { return shares[static_cast<std::size_t>(s)]; }
  double operator[](StepShare s) const { return shares[static_cast<std::size_t>(s)]; }
};
StepTime step_time(const StepParts& parts, const StackProfile& stack);
// The time of some work of a step alone.
StepTime work_time(const FunctionParts& work, const StepParts& step, const StackProfile& stack);
// The time of what follows the last microbatch. Its messages overlap `covered` seconds of work; one second more of them
// hides at most one second.
StepTime after_time(const FunctionParts& after, double covered, const StepParts& step, const StackProfile& stack);
// The time of a stage to send a microbatch's message to another stage.
double handing_on_time(const MessageParts& message, const StackProfile& stack);
// The fixed time that is added to a step of `seconds`.
double fixed_time(double seconds, const StepParts& step, const StackProfile& stack);

// The largest fraction of the chip's reached rate in products of layers; the same for all types.
double products_share(const KernelChoice& kernels, const StackProfile& stack);

}  // namespace systole
