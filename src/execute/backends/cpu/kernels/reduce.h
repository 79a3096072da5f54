#pragma once
// Reductions over any set of dims.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

constexpr int kMaxDims = 8;

enum class ReduceKind : std::uint8_t { sum, sum_of_squares, max, min };

// y = x reduced over the dims with `reduced` set. Floats are summed in f32 and rounded once; max and min propagate NaN;
// integers (i32, i64; bools are 0 and 1) are summed in i64. An empty sum is 0, an empty max -inf (the lowest integer).
struct ReduceArgs {
  ReduceKind kind;
  const void* x;
  void* y;
  Elem elem;    // of x
  Elem y_elem;  // f32 or bf16 for floats; i32, i64 or f32 for the others
  int ndim;
  std::int64_t size[kMaxDims];
  bool reduced[kMaxDims];
  int threads;
};

}  // namespace systole::cpu
