#pragma once
// contract_int8 and embedding_int8: products with weights in int8. The formula, its order of f32 operations and the law
// (the same bits everywhere) are in describe/ops/contract_int8.cc. Sums are exact integers, so each unit gives the same
// bits.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

// What multiplies int8 numbers.
enum class Int8Unit : std::uint8_t {
  pairs,  // vpmaddubsw of 256 bits: every machine of the backend
  vnni,   // vpdpbusd of 512 bits, on packed rows of x
  amx,    // tdpbssd on tiles from kAmxRows rows on, below vpdpbusd on rows as they lie
};
constexpr int kNumInt8Units = 3;

// y[rows, n] = x[rows, k] w[n, k]^T, rows of x quantised, times both scales.
struct ContractInt8Args {
  const float* x;
  const std::int8_t* w;
  const float* scale;  // [n]
  float* y;
  std::int64_t rows, n, k;
  Int8Unit unit;    // REQUIRES: the machine has it; pairs for the kernels of AVX2
  void* workspace;  // contract_int8_workspace bytes, aligned to 64
  int threads;
};

constexpr std::int64_t kAmxRows = 5;     // fewer are faster by vpdpbusd: a tile has 16 rows
constexpr std::int64_t kPanelRows = 25;  // of vnni: with fewer, fewer than 16 rows share a vector

static inline constexpr std::int64_t int8_padded(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
// Bytes: the rows of x in int8, padded to whole tiles; per row its scale and the sum of its numbers.
static inline constexpr std::int64_t contract_int8_workspace(std::int64_t rows, std::int64_t k) {
  return int8_padded(rows, 32) * (int8_padded(k, 64) + 8);
}

// y[i, :] = scale[ids[i]] table[ids[i], :]; zeros if the id is not in [0, vocab).
struct EmbeddingInt8Args {
  const std::int8_t* table;
  const float* scale;
  const std::int32_t* ids;
  float* y;
  std::int64_t num_ids, vocab, width;
  int threads;
};

}  // namespace systole::cpu
