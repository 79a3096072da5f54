#pragma once
// contract_int4: products with weights in four bits. The formula, its order of f32 operations and the law (the same bits
// everywhere) are in describe/ops/contract_int4.cc, the layout of panels in ground/tensor/int4.h. Sums over a group are
// exact integers, so each unit gives the same bits.

#include "execute/backends/cpu/kernels/int8.h"

namespace systole::cpu {

// y[rows, n] = x[rows, k] w^T, groups of x quantised.
struct ContractInt4Args {
  const float* x;
  const std::uint8_t* w;        // [n / 16, k / 32, 256]
  const std::uint16_t* scales;  // f16 [n / 16, k / 32, 32]
  float* y;
  std::int64_t rows, n, k;  // n a multiple of 16, k of 32
  Int8Unit unit;            // REQUIRES: the machine has it; pairs for the kernels of AVX2
  void* workspace;          // contract_int4_workspace bytes, aligned to 64
  int threads;
};

// Bytes: the rows of x in int8; per group its scale, and its scale times the sum of its numbers.
static inline constexpr std::int64_t contract_int4_workspace(std::int64_t rows, std::int64_t k) {
  return rows * k + rows * (k / 32) * 8;
}

}  // namespace systole::cpu
