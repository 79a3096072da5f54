#pragma once
// The time of a training step of a stack, out of what it is made of. docs/concepts/step-time.md has the formulas and
// where each comes from.

#include <array>

#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"

namespace systole {

enum class StepShare {
  products,  // of all kinds
  attention,
  movement,  // the ops between
  host,      // launches that the device waits for
  tensor,    // exposed messages of each kind
  context,
  expert,
  parameters,
  gradients,
  handing_on,  // between stages
  bubble,
  update,
  fixed,  // once a step, and for those who are late
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
// Of work of it alone.
StepTime work_time(const FunctionParts& work, const StepParts& step, const StackProfile& stack);
// Of what comes after all microbatches: `covered` seconds of work are beside its messages. One second more of them
// hides no more than one.
StepTime after_time(const FunctionParts& after, double covered, const StepParts& step, const StackProfile& stack);
// What a stage gives a microbatch's message to another.
double handing_on_time(const MessageParts& message, const StackProfile& stack);
// That comes to a step of so many seconds besides.
double fixed_time(double seconds, const StepParts& step, const StackProfile& stack);

// Of what a chip reaches in the products of layers, at the most; of all types the same.
double products_share(const KernelChoice& kernels, const StackProfile& stack);

}  // namespace systole
