#pragma once
// How elements of a dtype are combined: plain loops that the compiler turns into vectors. Integers wrap; the largest of
// floats is NaN where one of them is.

#include "execute/runtime/transport.h"
#include "ground/tensor/dtype.h"

namespace systole {

// `into[i] += piece[i]`, or the larger; null for a dtype without sums (bool, and f8, which are rounded too coarsely to
// be added to) or, of bf16 and f16, for the sum: see widened_sum_of.
CombinePiece combine_of(DType dtype, bool maximum);

// bf16 and f16 are summed in f32.
struct WidenedSum {
  void (*widen)(float* into, const std::byte* from, std::int64_t elements);
  CombinePiece add;  // a piece of the dtype to f32
  void (*round)(std::byte* into, const float* from, std::int64_t elements);
};
// REQUIRES: bf16 or f16.
WidenedSum widened_sum_of(DType dtype);

}  // namespace systole
