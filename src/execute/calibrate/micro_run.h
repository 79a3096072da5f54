#pragma once
// One small graph, planned, compiled and bound on a device, to be run again and again.

#include <memory>
#include <vector>

#include "describe/graph/program.h"
#include "execute/runtime/executor.h"
#include "ground/base/clock.h"

namespace systole {

struct Sample {
  Seconds median;
  double spread = 0;  // of the median: what the middle half lies within
  int runs = 0;
};
// REQUIRES: times is not empty.
Sample sample_of(std::vector<Seconds> times);

class MicroRun {
 public:
  // Inputs of floating-point type are filled with numbers in (-1, 1), the others with zeros.
  // Errors: of the device.
  static Result<std::unique_ptr<MicroRun>> make(Device& device, Graph graph);

  // Runs for `budget` at least, three times at least; a sample is of as many runs as take a millisecond.
  Result<Sample> measure(Clock& clock, Seconds budget);
  const Work& work() const { return program_.functions[0].work; }

 private:
  explicit MicroRun(Program program) : program_(std::move(program)) {}

  const Program program_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace systole
