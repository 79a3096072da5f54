#pragma once
// C = A B in f32, with operands in f32 or bf16. contract_gemm.h says which products it makes rather than oneDNN.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

// a[m, k] and b[n, k] by their strides in elements: `row` from one row to the next, `step` from one k to the next. One
// of them is usually 1; others work, slowly.
struct GemmOperand {
  const void* data;
  std::int64_t row, step;
};

struct GemmArgs {
  std::int64_t m, n, k;  // k ≥ 1
  Elem in, out;          // f32 or bf16
  GemmOperand a, b;
  void* c;             // [m, n]
  std::int64_t c_row;  // elements from one row to the next; a row is contiguous
  void* workspace;     // gemm_workspace bytes, aligned to 64
  int threads;
};

// The sum over k is split by its length alone, so its bits are the same for any number of threads.
constexpr std::int64_t kGemmSteps = 512, kGemmRows = 168, kGemmColumns = 1024;

static inline constexpr std::int64_t gemm_ceil(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
static inline constexpr std::int64_t gemm_steps(std::int64_t k) { return gemm_ceil(k, gemm_ceil(k, kGemmSteps)); }
// Columns of B packed at a time: a multiple of the tile width of any instruction set.
static inline constexpr std::int64_t gemm_columns(std::int64_t n) {
  const std::int64_t whole = gemm_ceil(n, 32) * 32;
  return whole < kGemmColumns ? whole : kGemmColumns;
}
// If C is bf16, sums between two ranges of k need separate f32 storage.
static inline constexpr bool gemm_keeps_sums(std::int64_t k, Elem out) { return out == Elem::bf16 && k > kGemmSteps; }

// Bytes: a panel of B, the sums, and a block of A per thread (plus 16 elements that whole vectors may overrun).
static inline constexpr std::int64_t gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, Elem out,
                                                    int threads) {
  const std::int64_t panel = gemm_columns(n) * gemm_steps(k), sums = gemm_keeps_sums(k, out) ? m * gemm_columns(n) : 0;
  return 4 * (panel + sums + threads * (kGemmRows * gemm_steps(k) + 16));
}

}  // namespace systole::cpu
