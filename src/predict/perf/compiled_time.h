#pragma once
// Predicts the compute time of a TPU's cores in a step by the compiler's schedule: the sum of the cycles that it
// records (`estimated_cycles`), at the chip's clock. It records none for collectives and for copies that run beside the
// cores (predict/prove/compiled_step.h); they are not counted.
//
// A kernel (compiled_kernels.h) takes its start, and then
//
//   product     the longest of: its FLOPs at the peak; its results at the rate at which they leave the matrix unit; its
//               bytes at memory bandwidth, where operands that outgrow the chip stream in for each block of results.
//               Plus `beside` of the two shorter ones, which are hidden only in part
//   attention   its FLOPs at the peak and its scores at their rate, combined in the same way; plus its accumulators
//   zeros       the elements that are set, at their rate
//   all else    its elements at the rate of the vector unit, plus its bytes at memory bandwidth
//
// Peak, bandwidth and clock are the maker's. The other rates are the catalog's facts `schedule.*`, fitted to the fitted
// rows of data/xla/matrix.csv and data/xla/products.csv. docs/concepts/time.md has the errors.

#include <optional>
#include <span>

#include "ground/catalog/catalog.h"
#include "predict/perf/compiled_kernels.h"

namespace systole {

// Rates of one device per clock cycle.
struct ScheduleSpeed {
  double cycles_per_second = 0;
  double flops = 0, bytes = 0;  // as the maker states
  double elements = 0;          // through the vector unit
  double results = 0;           // of products
  double filled = 0;            // set to a constant
  double scores = 0;            // of attention
  double block = 0;             // rows and columns of a block of a product's results
  double call = 0;              // cycles to start a kernel
  double beside = 0;            // fraction of the shorter terms that is not hidden
};

// Empty for a chip without `schedule.*`: its compiler reports no cycles, or was not measured yet. Errors: not_found,
// invalid, naming the fact.
Result<std::optional<ScheduleSpeed>> schedule_speed_of(const CatalogEntry& chip);

Seconds compiled_time(const CompiledKernel& kernel, const ScheduleSpeed& speed);  // of all its runs
TimeByClass compiled_time(std::span<const CompiledKernel> kernels, const ScheduleSpeed& speed);

}  // namespace systole
