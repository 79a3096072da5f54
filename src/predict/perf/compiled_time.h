#pragma once
// How long the cores of a TPU are predicted to compute in a step, by the schedule that its compiler makes: the sum of
// the cycles that it writes down (`estimated_cycles`), at the chip's clock. What it writes none for is in none of it:
// collectives, and copies that run beside the cores (predict/prove/step_time.h).
//
// A kernel (compiled_kernels.h) starts, and then takes
//
//   product     the longest of its FLOPs at the peak, its results at the rate at which they leave the matrix unit, and
//               its bytes at the memory's bandwidth, operands once for each block of results where they outgrow the
//               chip; and `beside` of the others, which are hidden in it in part
//   attention   its FLOPs at the peak and its scores at their rate in the same way, and the values that it sums in
//   zeros       the elements that are set, at the rate of that
//   all else    its elements at the rate at which values go by the vector unit, and its bytes at the memory's bandwidth
//
// Peak, bandwidth and clock are what the chip's maker says; the other rates are the catalog's facts `schedule.*`, found
// on the fitted rows of data/xla/matrix.csv and data/xla/products.csv. docs/concepts/time.md says how wrong it has
// been.

#include <optional>
#include <span>

#include "ground/catalog/catalog.h"
#include "predict/perf/compiled_kernels.h"

namespace systole {

// Of one device, in one cycle of its clock.
struct ScheduleSpeed {
  double cycles_per_second = 0;
  double flops = 0, bytes = 0;  // as it is sold
  double elements = 0;          // of values that go by
  double results = 0;           // of products
  double filled = 0;            // that are set to one number
  double scores = 0;            // of attention
  double block = 0;             // rows, and columns, of a product's results that are made at once
  double call = 0;              // cycles that a kernel starts in
  double beside = 0;            // of what is hidden behind something longer: the share that is seen all the same
};

// Nothing of a chip whose compiler tells no cycles, or told none yet. Errors: not_found, invalid, naming the fact.
Result<std::optional<ScheduleSpeed>> schedule_speed_of(const CatalogEntry& chip);

Seconds compiled_time(const CompiledKernel& kernel, const ScheduleSpeed& speed);  // of all its runs
TimeByClass compiled_time(std::span<const CompiledKernel> kernels, const ScheduleSpeed& speed);

}  // namespace systole
