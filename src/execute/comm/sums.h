#pragma once
// How elements of a dtype are combined: plain loops that the compiler vectorizes. Integers wrap; the max of floats is
// NaN if either is NaN.

#include "execute/runtime/transport.h"
#include "ground/tensor/dtype.h"

namespace systole {

// `into[i] += piece[i]`, or the max. Null for a dtype without sums (bool; f8, which rounds too coarsely for sums), and
// for the sum of bf16 and f16: see widened_sum_of.
CombinePiece combine_of(DType dtype, bool maximum);

// Sums of bf16 and f16 are accumulated in f32.
struct WidenedSum {
  void (*widen)(float* into, const std::byte* from, std::int64_t elements);
  CombinePiece add;  // adds a piece of the dtype to f32
  void (*round)(std::byte* into, const float* from, std::int64_t elements);
};
// REQUIRES: bf16 or f16.
WidenedSum widened_sum_of(DType dtype);

}  // namespace systole
