#pragma once
// attention and its gradient, in memory linear in the number of keys: blocks of queries against blocks of keys with an
// online softmax (Milakov and Gimelshein, arXiv:1805.02867; Dao et al., arXiv:2205.14135). Computes in f32.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

// q[b, t, h, d], k and v[b, s, n, d]; head i reads kv head i / (h / n).
struct AttentionShape {
  std::int64_t b, t, s, h, n, d;
  bool causal;  // query i sees keys j ≤ i + offset[b]
  double scale;
  std::int64_t window = 0;  // > 0, with causal: and i + offset[b] - j < window
  // Bias by distance, [h, places]; 0 places: none. A pair uses place clamp(j - i - offset[b] + origin).
  std::int64_t places = 0, origin = 0;
};

struct AttentionArgs {
  AttentionShape shape;
  Elem elem;  // of q, k, v, o
  const void *q, *k, *v;
  const std::int32_t *q_segments, *k_segments;  // [b, t] and [b, s], or null: only equal ids see each other
  const std::int32_t* offset;                   // [b], or null: 0
  void* o;                                      // [b, t, h, d]; zeros for a query that sees no key
  float* lse;                                   // [b, h, t]; -inf for a query that sees no key
  void* workspace;                              // attention_workspace bytes, aligned to 64
  int threads;
  const float* bias = nullptr;  // [h, places], or null
};

struct AttentionGradArgs {
  AttentionShape shape;
  Elem elem;
  const void *q, *k, *v, *o;
  const float* lse;
  const void* g;  // gradient of o
  const std::int32_t *q_segments, *k_segments;
  const std::int32_t* offset;
  void *dq, *dk, *dv;
  void* workspace;  // attention_grad_workspace and attention_bias_workspace bytes, aligned to 64
  int threads;
  const float* bias = nullptr;
  float* dbias = nullptr;  // [h, places], if there is a bias
};

constexpr std::int64_t kQueryBlock = 64, kKeyBlock = 64;
constexpr std::int64_t kQueryChunk = 256;  // queries that share one packing of the keys

// d rounded up to whole vectors of any instruction set.
static inline constexpr std::int64_t padded_head(std::int64_t d) { return (d + 15) / 16 * 16; }

// Bytes: per thread, a block of keys and of values, scores, and a chunk of queries with its running output.
static inline constexpr std::int64_t attention_workspace(const AttentionShape& shape, int threads) {
  const std::int64_t w = padded_head(shape.d);
  return threads * 4 * (2 * kKeyBlock * w + kQueryBlock * kKeyBlock + 2 * kQueryChunk * w + 2 * kQueryChunk);
}

// Bytes: per thread, all keys and values of a kv head packed (three ways), their gradients, and blocks of queries.
static inline constexpr std::int64_t attention_grad_workspace(const AttentionShape& shape, int threads) {
  const std::int64_t w = padded_head(shape.d), s = (shape.s + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
  return threads * 4 * (5 * s * w + 3 * kQueryBlock * w + 2 * kQueryBlock * kKeyBlock + 2 * kQueryBlock);
}

// Bytes: the bias gradient per batch entry and head, so that no two parts add to the same element.
static inline constexpr std::int64_t attention_bias_workspace(const AttentionShape& shape) {
  return 4 * shape.b * shape.h * shape.places;
}

}  // namespace systole::cpu
