#pragma once
// Shared by ops over the last dim (softmax, losses, norms, embedding): the type of their statistics, and the number of
// rows.

#include "describe/ir/type.h"

namespace systole::ops {

// Statistics and losses are f32, or f64 for f64 operands.
inline DType statistic_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// `type` without its last dim. REQUIRES: ndim > 0.
inline Type without_last(const Type& type, DType dtype) {
  Type rest = type.with(dtype);
  rest.remove_dim(rest.ndim() - 1);
  return rest;
}

inline std::int64_t last_size(const Type& type) { return type.size(type.ndim() - 1); }
inline std::int64_t rows_of(const Type& type) { return num_elements(Shape(type.shape.begin(), type.shape.end() - 1)); }

}  // namespace systole::ops
