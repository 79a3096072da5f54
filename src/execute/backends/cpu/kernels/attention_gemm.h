#pragma once
// The small matrix product inside attention: C[m, n] (+)= A[m, k] B[k, n] in f32, B and C row-major with n a multiple
// of kLanes, A with any two strides (so that Aᵀ costs nothing: its elements are broadcast one by one). Registers hold a
// tile of kTileRows × 2 vectors of C; per step of k that is 2 loads, kTileRows broadcasts and 2 kTileRows fused
// multiply-adds. The order of a sum is k ascending, whatever the tile.

#include "execute/backends/cpu/kernels/vec.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr int kTileRows = kLanes == 16 ? 8 : 4;

struct MatrixA {
  const float* data;
  i64 row, step;  // elements from one row to the next, from one k to the next
};

template <int kRows, int kVectors>
inline void tile(MatrixA a, const float* b, i64 b_row, float* c, i64 c_row, i64 k, bool accumulate) {
  F sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sum[i][j] = accumulate ? load(c + i * c_row + j * kLanes) : F{};
  }
  for (i64 step = 0; step < k; ++step) {
    F row[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) row[j] = load(b + step * b_row + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const F value = splat(a.data[i * a.row + step * a.step]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sum[i][j] += value * row[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) store(c + i * c_row + j * kLanes, sum[i][j]);
  }
}

template <int kRows>
inline void strip(MatrixA a, const float* b, i64 b_row, float* c, i64 c_row, i64 n, i64 k, bool accumulate) {
  i64 j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) tile<kRows, 2>(a, b + j, b_row, c + j, c_row, k, accumulate);
  if (j < n) tile<kRows, 1>(a, b + j, b_row, c + j, c_row, k, accumulate);
}

// REQUIRES: n a multiple of kLanes.
inline void product(MatrixA a, const float* b, i64 b_row, float* c, i64 c_row, i64 m, i64 n, i64 k, bool accumulate) {
  i64 i = 0;
  auto at = [&](i64 row) { return MatrixA{a.data + row * a.row, a.row, a.step}; };
  for (; i + kTileRows <= m; i += kTileRows) strip<kTileRows>(at(i), b, b_row, c + i * c_row, c_row, n, k, accumulate);
  for (; i + 2 <= m; i += 2) strip<2>(at(i), b, b_row, c + i * c_row, c_row, n, k, accumulate);
  if (i < m) strip<1>(at(i), b, b_row, c + i * c_row, c_row, n, k, accumulate);
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
