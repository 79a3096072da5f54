#pragma once
// Loops over a row in whole vectors, the last one padded. For kernel sources only.

#include "execute/backends/cpu/kernels/vec.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// Elements [i, i + kLanes) of a row of n; `fill` past its end.
template <typename T>
inline F get(const T* row, i64 i, i64 n, T fill = T{}) {
  return i + kLanes <= n ? load(row + i) : load_part(row + i, n - i, fill);
}
template <typename T>
inline void put(T* row, i64 i, i64 n, F v) {
  if (i + kLanes <= n) {
    store(row + i, v);
  } else {
    store_part(row + i, v, n - i);
  }
}

// v with 0 in the lanes past the end of the row.
inline F within(F v, i64 i, i64 n) {
  if (i + kLanes <= n) return v;
  float lanes[kLanes];
  store(lanes, v);
  for (int k = 0; k < kLanes; ++k) {
    if (i + k >= n) lanes[k] = 0;
  }
  return load(lanes);
}

// Σ over the row of value(i), a vector with 0 past the end. Four running sums, so the depth is n / (4 kLanes).
template <typename Fn>
inline float row_sum(i64 n, const Fn& value) {
  F sum[4] = {};
  i64 i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k) sum[k] += value(i + k * kLanes);
  }
  for (; i < n; i += kLanes) sum[0] += value(i);
  return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

template <typename T>
inline float row_max(const T* row, i64 n) {
  const T lowest = of_f32<T>(-__builtin_inff());
  F top[2] = {splat(-__builtin_inff()), splat(-__builtin_inff())};
  i64 i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    for (int k = 0; k < 2; ++k) top[k] = max_nan(top[k], load(row + i + k * kLanes));
  }
  for (; i < n; i += kLanes) top[0] = max_nan(top[0], get(row, i, n, lowest));
  return max_lanes(max_nan(top[0], top[1]));
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
