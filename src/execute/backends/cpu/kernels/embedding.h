#pragma once
// embedding and its gradient (a scatter-add), and rotary.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

// y[i, :] = table[ids[i], :]; zeros if the id is not in [0, vocab).
struct EmbeddingArgs {
  const void* table;
  const std::int32_t* ids;
  void* y;
  Elem elem;
  std::int64_t num_ids, vocab, width;
  int threads;
};

// table[v, :] = Σ over i with ids[i] = v of g[i, :], in order of i, in f32.
struct EmbeddingGradArgs {
  const std::int32_t* ids;
  const void* g;
  float* table;
  Elem elem;  // of g
  std::int64_t num_ids, vocab, width;
  int threads;
};

constexpr std::int64_t kMaxRotaryWidth = 1024;

// Llama 3.1's frequency scaling for long contexts; factor 0: none. The formula is in describe/ops/rotary.cc.
struct RotaryStretch {
  double factor, low_freq_factor, high_freq_factor, original_context;
};

// x[tokens, heads, d] with positions [tokens]; y may be x. d is even and at most kMaxRotaryWidth. The angles are f64.
struct RotaryArgs {
  const void* x;
  const std::int32_t* positions;
  void* y;
  Elem elem;
  std::int64_t tokens, heads, d;
  double theta;
  RotaryStretch stretch;
  bool inverse;
  int threads;
};

}  // namespace systole::cpu
