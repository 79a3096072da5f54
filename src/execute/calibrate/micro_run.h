#pragma once
// One small graph, planned, compiled and bound on a device, to be run again and again.

#include <memory>
#include <string_view>
#include <vector>

#include "describe/graph/program.h"
#include "execute/runtime/executor.h"
#include "ground/base/clock.h"

namespace systole {

// Others on the machine make a run slow, never fast: the lower quarter is the machine's own.
struct Sample {
  Seconds time;       // that a quarter of the runs took less than
  double spread = 0;  // what the middle half lies within, of the time
  int runs = 0;
};
// REQUIRES: times is not empty.
Sample sample_of(std::vector<Seconds> times);

class MicroRun {
 public:
  // Inputs of floating-point type are filled with numbers in (-1, 1), integers with numbers in [0, 64), the first 1,
  // booleans with true. An output named as an input
  // takes its place.
  // Errors: of the device.
  static Result<std::unique_ptr<MicroRun>> make(Device& device, Graph graph);

  // Runs for `budget` at least, three times at least; a sample is of as many runs as take a millisecond.
  Result<Sample> measure(Clock& clock, Seconds budget);
  // The same of one op alone: the mean of its calls in each run. REQUIRES: the graph has such an op.
  // Errors: unsupported where the device does not time its ops.
  Result<Sample> measure_op(Clock& clock, Seconds budget, std::string_view op);
  const Work& work() const { return program_.functions[0].work; }

 private:
  explicit MicroRun(Program program) : program_(std::move(program)) {}

  const Program program_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace systole
