#pragma once
// What one looks at a tensor for: its range, its mean and spread, and whether all of it is a number.

#include <cstdint>
#include <string>
#include <vector>

#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole {

struct TensorStats {
  std::int64_t count = 0, nans = 0, infinities = 0;
  std::int64_t first_bad = -1;  // the first element that is NaN or infinite
  // Of the finite elements; all 0 without any.
  double low = 0, high = 0, mean = 0, deviation = 0, rms = 0;

  std::int64_t bad() const { return nans + infinities; }
};

// Two passes over the elements, in f64, in order: the same for the same bytes.
TensorStats stats_of(DType dtype, const std::byte* data, std::int64_t count);

std::string range_text(const TensorStats& stats);  // "-1.25 .. 3.5", "-1.25 .. 3.5, 3 NaN", "all NaN"

// The place of an element of a row-major tensor, per dim: "[1, 0, 7]".
std::string place_text(const Shape& shape, std::int64_t element);

}  // namespace systole
