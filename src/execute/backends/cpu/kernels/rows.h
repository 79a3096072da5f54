#pragma once
// Kernels over rows: softmax, cross_entropy, norms. A tensor is `rows` rows of n elements, row-major. Computes in f32;
// x, y and their gradients are f32 or bf16, statistics and losses f32. Results may alias operands of the same type.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

struct SoftmaxArgs {
  const void* x;
  void* y;
  Elem elem;
  std::int64_t rows, n;
  void* workspace;  // softmax_workspace bytes, aligned to 64
  int threads;
};
// bf16 rows are converted to f32, one row per thread.
static inline constexpr std::int64_t softmax_workspace(Elem elem, std::int64_t n, int threads) {
  return elem == Elem::bf16 ? (n * 4 + 63) / 64 * 64 * threads : 0;
}

struct CrossEntropyArgs {
  const void* logits;
  const std::int32_t* labels;  // [rows]; < 0: ignored, ≥ n: no logit picked
  float* loss;                 // [rows]
  float* lse;                  // [rows]
  Elem elem;
  std::int64_t rows, n;
  int threads;
};

struct CrossEntropyGradArgs {
  const void* logits;
  const std::int32_t* labels;
  const float* lse;
  const float* g;  // [rows]
  void* dlogits;   // may be the logits
  Elem elem;
  std::int64_t rows, n;
  int threads;
};

struct RmsNormArgs {
  const void* x;
  const void* scale;  // [n]
  void* y;
  float* rstd;  // [rows]
  Elem elem, scale_elem;
  std::int64_t rows, n;
  double eps;
  int threads;
};

struct LayerNormArgs {
  const void* x;
  const void* scale;
  const void* bias;  // of scale's type
  void* y;
  float* mean;
  float* rstd;
  Elem elem, scale_elem;
  std::int64_t rows, n;
  double eps;
  int threads;
};

// The gradients of scale and bias are first summed over blocks of rows; the blocks depend on `rows` alone.
static inline constexpr std::int64_t norm_block_rows(std::int64_t rows) {
  return rows <= 32 * 64 ? 32 : (rows + 63) / 64;
}
static inline constexpr std::int64_t norm_blocks(std::int64_t rows) {
  return (rows + norm_block_rows(rows) - 1) / norm_block_rows(rows);
}
// Bytes, for `vectors` gradients of [n] (rms_norm 1, layer_norm 2, or 0 if not requested).
static inline constexpr std::int64_t norm_grad_workspace(std::int64_t rows, std::int64_t n, int vectors) {
  return norm_blocks(rows) * n * 4 * vectors;
}

struct RmsNormGradArgs {
  const void* x;
  const void* scale;
  const float* rstd;
  const void* g;
  void* dx;
  void* dscale;  // of scale's type; null: not requested
  Elem elem, scale_elem;
  std::int64_t rows, n;
  void* workspace;  // norm_grad_workspace
  int threads;
};

struct LayerNormGradArgs {
  const void* x;
  const void* scale;
  const float* mean;
  const float* rstd;
  const void* g;
  void* dx;
  void* dscale;  // null: neither dscale nor dbias is requested
  void* dbias;
  Elem elem, scale_elem;
  std::int64_t rows, n;
  void* workspace;
  int threads;
};

}  // namespace systole::cpu
