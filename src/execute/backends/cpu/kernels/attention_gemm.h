#pragma once
// The small matrix product inside attention: C[m, n] (+)= A[m, k] B[k, n] in f32. B and C are row-major with n a
// multiple of kLanes. A has any two strides (so Aᵀ is free: its elements are broadcast one by one). Registers hold a
// tile of kTileRows × 2 vectors of C; each step of k takes 2 loads, kTileRows broadcasts and 2 kTileRows fused
// multiply-adds. With fewer rows the tile is twice as wide, for enough sums that do not wait for each other. A sum is in
// order of ascending k, whatever the tile.
//
// Under a causal mask half of a block on the diagonal is masked, with zero weights. A Band gives the columns, or the
// range of the sum, that the rows of a strip of C need.

#include "execute/backends/cpu/kernels/vec.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr int kTileRows = kLanes == 16 ? 8 : 4;

template <int kValue>
struct Count {
  static constexpr int value = kValue;
};

struct MatrixA {
  const float* data;
  i64 row, step;  // strides in elements: of a row, of k
};

template <int kRows, int kVectors>
inline void tile(MatrixA a, const float* b, i64 b_row, float* c, i64 c_row, i64 k, bool accumulate) {
  F sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sum[i][j] = accumulate ? load(c + i * c_row + j * kLanes) : F{};
  }
  for (i64 step = 0; step < k; ++step) {
    F row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) row[j] = load(b + step * b_row + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const F value = splat(a.data[i * a.row + step * a.step]);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sum[i][j] += value * row[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) store(c + i * c_row + j * kLanes, sum[i][j]);
  }
}

template <int kRows>
inline void strip(MatrixA a, const float* b, i64 b_row, float* c, i64 c_row, i64 n, i64 k, bool accumulate) {
  i64 j = 0;
  if constexpr (2 * kRows <= kTileRows) {
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) tile<kRows, 4>(a, b + j, b_row, c + j, c_row, k, accumulate);
  }
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) tile<kRows, 2>(a, b + j, b_row, c + j, c_row, k, accumulate);
  if (j < n) tile<kRows, 1>(a, b + j, b_row, c + j, c_row, k, accumulate);
}

// The need of rows [i, i + rows) of C: columns [0, n) and steps [begin, end) of the sum.
struct Need {
  i64 n, begin, end;
};

// Query r of one block sees key j of another if j ≤ r + shift.
struct Band {
  i64 shift;
  // C's columns are keys, its rows queries.
  Need columns(i64 i, i64 rows, i64 n, i64 k) const {
    const i64 seen = greater(0, i + rows + shift);
    return {lesser(n, ceil_div(seen, kLanes) * kLanes), 0, k};
  }
  // The sum is over keys, C's rows are queries.
  Need keys(i64 i, i64 rows, i64 n, i64 k) const { return {n, 0, greater(0, lesser(k, i + rows + shift))}; }
  // The sum is over queries, C's rows are keys.
  Need queries(i64 i, i64 n, i64 k) const { return {n, lesser(k, greater(0, i - shift)), k}; }
};

// Calls fn(Count<rows>()). REQUIRES: 1 ≤ rows ≤ kMost.
template <int kMost, typename Fn>
inline void with_count(i64 rows, const Fn& fn) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return with_count<kMost - 1>(rows, fn);
  }
  fn(Count<kMost>());
}

// need(i, rows) → Need. Columns that a row does not need are not written. REQUIRES: n a multiple of kLanes.
template <typename NeedOf>
inline void product(MatrixA a, const float* b, i64 b_row, float* c, i64 c_row, i64 m, bool accumulate,
                    const NeedOf& need) {
  const auto rows = [&](auto count, i64 i) {
    constexpr int kRows = decltype(count)::value;
    const Need z = need(i, kRows);
    strip<kRows>({a.data + i * a.row + z.begin * a.step, a.row, a.step}, b + z.begin * b_row, b_row, c + i * c_row,
                 c_row, z.n, z.end - z.begin, accumulate);
  };
  i64 i = 0;
  for (; i + kTileRows <= m; i += kTileRows) rows(Count<kTileRows>(), i);
  if (i < m) with_count<kTileRows - 1>(m - i, [&](auto count) { rows(count, i); });
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
