#pragma once
// Data movement: strided copies (transpose, slice, concatenate, pad and broadcast), fills, a row taken from each entry,
// and rows written into a cache.
// Roofline: bytes read and written over the memory's rate.

#include "execute/backends/cpu/kernels/reduce.h"

namespace systole::cpu {

// dst[Σ i_k dst_stride_k] = src[Σ i_k src_stride_k] for all i in size. Strides in elements; a src stride of 0 repeats.
// REQUIRES: no two i write one element; dst and src do not overlap.
struct CopyArgs {
  const void* src;
  void* dst;
  int elem_size;                  // bytes: 1, 2, 4 or 8
  std::int64_t operand_elements;  // elements of the whole tensor of src: reported as read
  int ndim;
  std::int64_t size[kMaxDims], src_stride[kMaxDims], dst_stride[kMaxDims];
  int threads;
};

// Fills n elements with the given bits.
struct FillArgs {
  void* dst;
  int elem_size;
  std::uint64_t bits;
  std::int64_t n;
  int threads;
};

// y[b, :] = x[b, index[b], :] over `inner` elements; zeros if index is not in [0, rows).
struct TakeRowArgs {
  const void* x;
  const std::int32_t* index;
  void* y;
  int elem_size;
  std::int64_t batch, rows, inner;
  int threads;
};

// cache[b, position[b] + i, :] = rows[b, i, :] for i < count; rows outside [0, cache_rows) are dropped.
struct CacheWriteArgs {
  const void* cache_in;  // copied first if it is not the cache itself
  void* cache;
  const void* rows;
  const std::int32_t* position;
  int elem_size;
  std::int64_t batch, cache_rows, count, inner;
  int threads;
};

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

}  // namespace systole::cpu
