#pragma once
// lora_rows of describe/ops/lora_rows.cc: low-rank adapters, another for each entry of a batch.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

constexpr std::int64_t kMostAdapterRank = 64;

struct LoraRowsArgs {
  const float* x;             // [entries, rows, in]
  const float* y;             // [entries, rows, out]
  const float* a;             // [adapters, rank, in]
  const float* b;             // [adapters, rank, out]
  const std::int32_t* which;  // [entries]: 1 is the first adapter; others than these: none
  float* z;                   // like y; may be y
  std::int64_t entries, rows, in, out;
  std::int64_t adapters, rank;  // rank at most kMostAdapterRank
  int threads;
};

}  // namespace systole::cpu
