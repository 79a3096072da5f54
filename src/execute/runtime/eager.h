#pragma once
// Finds the first NaN or infinity. A device that runs kernel by kernel calls before() and after() around each kernel;
// the first non-finite result ends the run with an error that names its origin. The check changes no computed bit.

#include <functional>
#include <string>

#include "describe/program/program.h"
#include "execute/runtime/device.h"
#include "ground/tensor/stats.h"

namespace systole {

class EagerCheck : public KernelObserver {
 public:
  // `told` receives a line per kernel of the first step: where, op, types and ranges of its results.
  explicit EagerCheck(std::function<void(const std::string&)> told) : told_(std::move(told)) {}

  // Sets the step and action of the kernels that follow.
  void enter(std::int64_t step, const Action& action, const Function& function);

  void before(const ObservedKernel& kernel) override;
  // Errors: corrupt, naming step, function, layers, op and value, its first bad element, and the operands' ranges.
  Status after(const ObservedKernel& kernel) override;

  std::int64_t kernels() const { return kernels_; }

 private:
  std::string where(const ObservedKernel& kernel) const;

  std::function<void(const std::string&)> told_;
  std::int64_t step_ = 0, first_step_ = -1, kernels_ = 0;
  int microbatch_ = 0;
  std::string function_;
  std::vector<TensorStats> operands_;  // of the current kernel, taken before it overwrites them
};

}  // namespace systole
