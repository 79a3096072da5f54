#pragma once
// Attention over a cache of keys and values in pages (describe/ops/paged.cc). Computes in f32, to which keys and values
// are widened a block at a time. A query's result has the
// same bits whatever else is in the call: the number of queries and of entries, the query's place among them, and the
// pages that hold its keys.

#include "execute/backends/cpu/kernels/attention.h"

namespace systole::cpu {

struct PagedShape {
  std::int64_t b, t, h, n, d;
  std::int64_t pages, size, entries;  // of the pool; of a page, in positions; of a table
  double scale;
  std::int64_t window = 0;  // > 0: query i sees position j only if i + offset[b] - j < window
};

struct PagedAttentionArgs {
  PagedShape shape;
  Elem elem, cache;       // of q and o; of k and v: the same, or bf16
  const void *q, *k, *v;  // [b, t, h, d], [pages, size, n, d]
  const std::int32_t *table, *offset;
  void* o;          // [b, t, h, d]
  void* workspace;  // paged_attention_workspace bytes, aligned to 64
  int threads;
};

// Keys whose sums are computed by themselves; those of all runs are then merged in order. A multiple of kKeyBlock.
constexpr std::int64_t kKeyRun = 128;
// Rows of an entry and a kv head, up to which threads share the runs of keys of one sequence.
constexpr std::int64_t kFewPagedRows = 16;

static inline constexpr std::int64_t paged_group(const PagedShape& shape) { return shape.h / shape.n; }
// The queries of a part. Its rows are those of all heads that share a kv head: at most kQueryChunk, or one query's.
static inline constexpr std::int64_t paged_queries(const PagedShape& shape) {
  const std::int64_t group = shape.h < shape.n ? 1 : paged_group(shape), most = kQueryChunk / group,
                     queries = most < shape.t ? most : shape.t;
  return queries < 1 ? 1 : queries;
}
static inline constexpr bool paged_few_rows(const PagedShape& shape) {
  return shape.t * paged_group(shape) <= kFewPagedRows;
}
// Runs of keys of the longest sequence.
static inline constexpr std::int64_t paged_runs(const PagedShape& shape) {
  const std::int64_t runs = (shape.entries * shape.size + kKeyRun - 1) / kKeyRun;
  return runs < 1 ? 1 : runs;
}

// Floats. A part's rows, in whole vectors; their weighted sums of values, maxima and sums of weights.
static inline constexpr std::int64_t paged_rows(const PagedShape& shape) {
  return (paged_queries(shape) * paged_group(shape) + 15) / 16 * 16;
}
static inline constexpr std::int64_t paged_sums(const PagedShape& shape) {
  return paged_queries(shape) * paged_group(shape) * padded_head(shape.d) + 2 * paged_rows(shape);
}
// Of a thread: a block of keys and of values, scores, queries, factors, and sums of a run and of all runs.
static inline constexpr std::int64_t paged_thread_workspace(const PagedShape& shape) {
  const std::int64_t w = padded_head(shape.d), rows = paged_rows(shape);
  return 2 * kKeyBlock * w + rows * (kKeyBlock + w + 2) + 2 * paged_sums(shape);
}
// Bytes: those of the threads; with few rows also the sums of every run, and a count of runs done per kv head.
static inline constexpr std::int64_t paged_attention_workspace(const PagedShape& shape, int threads) {
  const std::int64_t heads = paged_few_rows(shape) ? shape.b * shape.n : 0;
  return 4 * (threads * paged_thread_workspace(shape) + heads * (paged_runs(shape) * paged_sums(shape) + 1));
}

}  // namespace systole::cpu
