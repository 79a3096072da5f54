#pragma once
// `probe:` prints values after each step at which they are due: a line for each value with its range and moments. The
// same goes as JSON to probes/<step>.jsonl of the run; with probe.save the tensor itself goes to
// probes/<step>/<name>.npy.
//
// Activations are of the step's last microbatch; gradients are sums over all its labels, before clipping; parameters
// are those after the step.

#include <functional>

#include "describe/spec/workload.h"
#include "execute/runtime/executor.h"
#include "ground/store/store.h"

namespace systole {

class Probes {
 public:
  // All must outlive it. `told`: gets lines for people.
  Probes(const ProbeSpec& spec, Executor& executor, Store& folder, std::function<void(const std::string&)> told);

  // Errors: io, no_space.
  Status after_step(std::int64_t step);

 private:
  // A value of the Program, or one index of its outermost dim.
  struct Shown {
    std::string name;
    int value;
    std::int64_t index;  // -1: all of it
    bool saved;
  };
  void add(const std::string& name, int value, bool stacked, const std::string& group);
  Status show(const Shown& shown, std::int64_t step, std::string& lines);

  const ProbeSpec& spec_;
  Executor& executor_;
  Store& folder_;
  std::function<void(const std::string&)> told_;
  std::vector<Shown> shown_;
};

}  // namespace systole
