#pragma once
// Rows of x in int8, as the references of contract_int8 and contract_int4 make them:
//
//   t = max |x[i]|    scale = t / 127    q[i] = nearest even integer of x[i] * (127 / t)
//
// A row with t < 2^-100 counts as zeros. The scale of one with a value that is not finite is NaN.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "describe/ir/op.h"

namespace systole::ops {

inline Scalar as_f32(Scalar x) { return Scalar(rounded(DType::f32, x.value())); }  // of one operation in f64: innocuous

struct QuantizedRow {
  Scalar scale;
  std::vector<Scalar> q;
};

// Elements [first, first + k) of x.
inline QuantizedRow quantized_row(const TensorView& x, std::int64_t first, std::int64_t k) {
  constexpr double kSmallest = 0x1p-100;  // of t: below, 127 / t may overflow
  double top = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < k; ++i) {
    top = std::max(top, std::abs(x.raw(first + i)));
    finite = finite && std::isfinite(x.raw(first + i));
  }
  const Scalar largest(std::max(top, kSmallest)), limit(127);
  const Scalar scale = as_f32(largest / limit), inverse = as_f32(limit / largest);
  QuantizedRow row{scale, {}};
  const bool counts = finite && top >= kSmallest;
  for (std::int64_t i = 0; i < k; ++i) {
    const Scalar scaled = as_f32(x.at(first + i) * inverse);
    row.q.push_back(Scalar(counts ? std::nearbyint(scaled.value()) : 0));
  }
  if (!finite) row.scale = Scalar(std::numeric_limits<double>::quiet_NaN());
  return row;
}

}  // namespace systole::ops
