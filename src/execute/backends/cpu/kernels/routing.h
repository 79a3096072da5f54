#pragma once
// Expert routing: top_k and route of describe/ops, with their orders.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

struct TopKArgs {
  const void* x;  // [rows, n], f32 or bf16
  void* values;   // [rows, k], like x
  std::int32_t* indices;
  Elem elem;
  std::int64_t rows, n, k;
  int threads;
};

struct RouteArgs {
  const std::int32_t* chosen;    // [groups, tokens, k]
  std::int32_t *choice, *token;  // [groups, experts, capacity]
  std::int32_t* wanted;          // [groups, experts]
  std::int64_t groups, tokens, k, experts, capacity;
  int threads;
};

}  // namespace systole::cpu
