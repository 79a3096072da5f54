#pragma once
// Statistics of a tensor: range, mean and deviation, and the number of elements that are not finite.

#include <cstdint>
#include <string>
#include <vector>

#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole {

struct TensorStats {
  std::int64_t count = 0, nans = 0, infinities = 0;
  std::int64_t first_bad = -1;  // the first element that is NaN or infinite
  // Over the finite elements; all 0 if there are none.
  double low = 0, high = 0, mean = 0, deviation = 0, rms = 0;

  std::int64_t bad() const { return nans + infinities; }
};

// Two passes over the elements in f64, in order, so the result is deterministic.
TensorStats stats_of(DType dtype, const std::byte* data, std::int64_t count);

std::string range_text(const TensorStats& stats);  // "-1.25 .. 3.5", "-1.25 .. 3.5, 3 NaN", "all NaN"

// The index of an element of a row-major tensor, per dim: "[1, 0, 7]".
std::string place_text(const Shape& shape, std::int64_t element);

}  // namespace systole
