#pragma once
// The cache of keys and values in pages: writing rows into it, and attention over it (describe/ops/paged.cc). Computes in
// f32. A query's result has the same bits whatever else is in the call: the number of queries and of entries, the
// query's place among them, and the pages that hold its keys.

#include "execute/backends/cpu/kernels/attention.h"

namespace systole::cpu {

// Row t of entry b goes to position position[b] + t: row (position mod size) of page table[b, position / size]. Without a
// table entry b has page b alone.
struct PageWriteArgs {
  const void* pages_in;                  // copied first if it is not the pool itself
  void* pages;                           // [count, size, inner]
  const void* rows;                      // [batch, t, inner]
  const std::int32_t *table, *position;  // [batch, entries] or null, [batch]
  int elem_size;
  std::int64_t count, size, batch, t, entries, inner;
  int threads;
};

struct PagedShape {
  std::int64_t b, t, h, n, d;
  std::int64_t pages, size, entries;  // of the pool; of a page, in positions; of a table
  double scale;
  std::int64_t window = 0;  // > 0: query i sees position j only if i + offset[b] - j < window
};

struct PagedAttentionArgs {
  PagedShape shape;
  Elem elem;              // of q, k, v, o
  const void *q, *k, *v;  // [b, t, h, d], [pages, size, n, d]
  const std::int32_t *table, *offset;
  void* o;          // [b, t, h, d]
  void* workspace;  // paged_attention_workspace bytes, aligned to 64
  int threads;
};

// The queries of a part. Its rows are those of all heads that share a kv head: at most kQueryChunk, or one query's.
static inline constexpr std::int64_t paged_queries(const PagedShape& shape) {
  const std::int64_t group = shape.h < shape.n ? 1 : shape.h / shape.n, most = kQueryChunk / group,
                     queries = most < shape.t ? most : shape.t;
  return queries < 1 ? 1 : queries;
}

// Bytes: per thread, a block of keys and of values, scores, and the part's rows with their sums, maxima and weights.
static inline constexpr std::int64_t paged_attention_workspace(const PagedShape& shape, int threads) {
  const std::int64_t w = padded_head(shape.d), rows = (paged_queries(shape) * (shape.h / shape.n) + 15) / 16 * 16;
  return threads * 4 * (2 * kKeyBlock * w + rows * kKeyBlock + 2 * rows * w + 3 * rows);
}

}  // namespace systole::cpu
