#pragma once
// A small graph, planned, compiled and bound on a device, for repeated timing.

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "describe/program/program.h"
#include "execute/runtime/executor.h"
#include "ground/base/clock.h"

namespace systole {

// The lower quartile of run times: other load makes a run slow, never fast.
struct Sample {
  Seconds time;       // lower quartile
  double spread = 0;  // interquartile range relative to the time
  int runs = 0;
};
// REQUIRES: times is not empty.
Sample sample_of(std::vector<Seconds> times);

// What is left of a time without a part that was measured apart; at least a tenth, so noise makes no rate infinite.
inline Seconds rest_of(Seconds whole, Seconds part) { return std::max(whole - part, whole * 0.1); }

class MicroRun {
 public:
  // Floating-point inputs are filled with numbers in (-1, 1), integers with numbers in [0, 64) beginning with 1,
  // booleans with true. An output with the name of an input updates it in place.
  // Errors: of the device.
  static Result<std::unique_ptr<MicroRun>> make(Device& device, Graph graph);

  // Runs at least for `budget` and at least three times. Each sample has enough runs to take a millisecond.
  Result<Sample> measure(Clock& clock, Seconds budget);
  // As measure, for one op: the mean of its calls in each run. REQUIRES: the graph has such an op.
  // Errors: unsupported if the device does not time its ops.
  Result<Sample> measure_op(Clock& clock, Seconds budget, std::string_view op);
  // The work of one call of an op. REQUIRES: as measure_op.
  Work work_of_one(std::string_view op) const;
  const Work& work() const { return program_.functions[0].work; }

 private:
  explicit MicroRun(Program program) : program_(std::move(program)) {}

  const Program program_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace systole
