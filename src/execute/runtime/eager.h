#pragma once
// Looks at every value as it is made: a device that runs kernel by kernel calls before() and after() around each, and
// the first result that is not a number ends the run, named with the place where it came about. It changes no bit of
// what is computed.

#include <functional>
#include <string>

#include "describe/graph/program.h"
#include "execute/runtime/device.h"
#include "ground/tensor/stats.h"

namespace systole {

class EagerCheck : public KernelObserver {
 public:
  // `told` is given a line of each kernel of the first step: where, op, types and ranges of its results.
  explicit EagerCheck(std::function<void(const std::string&)> told) : told_(std::move(told)) {}

  // The kernels that follow are of this step and action.
  void enter(std::int64_t step, const Action& action, const Function& function);

  void before(const SeenKernel& kernel) override;
  // Errors: corrupt, naming step, function, layers, op and value, its first bad element, and the operands' ranges.
  Status after(const SeenKernel& kernel) override;

  std::int64_t kernels() const { return kernels_; }

 private:
  std::string where(const SeenKernel& kernel) const;

  std::function<void(const std::string&)> told_;
  std::int64_t step_ = 0, first_step_ = -1, kernels_ = 0;
  int microbatch_ = 0;
  std::string function_;
  std::vector<TensorStats> operands_;  // of the kernel at hand, before it writes over them
};

}  // namespace systole
