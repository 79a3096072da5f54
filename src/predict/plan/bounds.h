#pragma once
// What no step of a candidate falls below, out of the model's parameters alone, in nanoseconds: so that most candidates
// need not even be composed. The law search-is-program holds both bounds to be none above the exact value.
//
//   time    the products of layers, each token once forward and twice backward (once more where blocks are done
//           again), at what the chip reaches in its best products; in a pipeline the first microbatch goes through all
//           stages before the last, and the last one's gradients through all behind it
//   memory  parameters, the optimizer's state and gradients of an even part of the model, and what each layer is given,
//           of as many microbatches as the first stage has under way

#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"
#include "predict/plan/composed.h"

namespace systole {

class Bounds {
 public:
  // `composer` outlives this.
  explicit Bounds(const Composer& composer);

  Seconds time(const Candidate& candidate, const Accelerator& chip, const KernelChoice& kernels,
               const StackProfile& stack) const;
  // Of any candidate on so many devices.
  Seconds time(std::int64_t devices, const Accelerator& chip, const KernelChoice& kernels,
               const StackProfile& stack) const;
  Bytes memory(const Candidate& candidate, const KernelChoice& kernels, const StackProfile& stack) const;

 private:
  Seconds seconds(double flops, const Accelerator& chip, const KernelChoice& kernels, const StackProfile& stack) const;

  const Composer& composer_;
  std::int64_t elements_ = 0, trained_ = 0, state_bytes_ = 0;  // state_bytes_: of a trained number
  std::int64_t carried_ = 0;                                   // bytes of a row between two layers
  double forward_ = 0, backward_ = 0;                          // FLOPs of a row, of all layers
};

}  // namespace systole
