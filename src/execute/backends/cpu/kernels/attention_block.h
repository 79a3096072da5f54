#pragma once
// What attention and its gradient share: which pairs of a block of queries and a block of keys see each other, and
// bringing rows of q, k, v into f32. For kernel sources only.

#include "execute/backends/cpu/kernels/attention.h"
#include "execute/backends/cpu/kernels/attention_gemm.h"
#include "execute/backends/cpu/kernels/row.h"
#include "execute/backends/cpu/kernels/transpose.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// The masks of one batch entry.
struct Masks {
  const AttentionShape& shape;
  const std::int32_t *q_segments, *k_segments;  // of this entry, or null
  bool has_offset;
  i64 offset;

  // Query i sees no key at or past this: by shape, and by shape and offset.
  i64 keys_by_shape(i64 i) const { return shape.causal && !has_offset ? lesser(i + 1, shape.s) : shape.s; }
  i64 keys(i64 i) const { return shape.causal ? greater(0, lesser(i + 1 + offset, shape.s)) : shape.s; }
  // And none before this; never falls with i.
  i64 first(i64 i) const { return shape.window > 0 ? greater(0, i + 1 + offset - shape.window) : 0; }
};

template <typename Args>
Masks masks_of(const Args& args, i64 b) {
  const AttentionShape& shape = args.shape;
  return {shape, args.q_segments == nullptr ? nullptr : args.q_segments + b * shape.t,
          args.k_segments == nullptr ? nullptr : args.k_segments + b * shape.s, args.offset != nullptr,
          args.offset == nullptr ? 0 : args.offset[b]};
}

struct Span {
  std::int32_t low, high;
};
inline Span span_of(const std::int32_t* ids, i64 begin, i64 end) {
  Span span{ids[begin], ids[begin]};
  for (i64 i = begin + 1; i < end; ++i) {
    span.low = ids[i] < span.low ? ids[i] : span.low;
    span.high = ids[i] > span.high ? ids[i] : span.high;
  }
  return span;
}

// How a block of queries sees a block of keys: not at all, and it is left out; by place alone (shape, offset,
// window, the segments all one); or each pair by its segments too.
enum class Sight { none, by_place, by_segment };

inline Sight sight_of(const Masks& masks, i64 i0, i64 i1, i64 j0, i64 j1) {
  if (masks.keys(i1 - 1) <= j0 || masks.first(i0) >= j1) return Sight::none;
  if (masks.q_segments == nullptr) return Sight::by_place;
  const Span q = span_of(masks.q_segments, i0, i1), k = span_of(masks.k_segments, j0, j1);
  if (q.high < k.low || k.high < q.low) return Sight::none;
  return q.low == q.high && k.low == k.high ? Sight::by_place : Sight::by_segment;
}

// Pairs of the block that offset, window and shape let through: what is counted as done when it is not left out.
inline i64 pairs_of(const Masks& masks, i64 i0, i64 i1, i64 j0, i64 j1) {
  i64 pairs = 0;
  for (i64 i = i0; i < i1; ++i) pairs += greater(0, lesser(masks.keys(i), j1) - greater(masks.first(i), j0));
  return pairs;
}

// Pairs that shape lets through. An offset is data; a window bounds what it can let a query see.
inline i64 all_pairs(const AttentionShape& shape, bool has_offset) {
  const i64 heads = shape.b * shape.h, window = shape.window;
  if (!shape.causal || has_offset) return heads * shape.t * (window > 0 ? lesser(window, shape.s) : shape.s);
  const auto ramp = [&](i64 queries) {  // Σ min(i + 1, s)
    const i64 up = lesser(queries, shape.s);
    return up * (up + 1) / 2 + (queries - up) * shape.s;
  };
  return heads * (ramp(shape.t) - (window > 0 ? ramp(greater(shape.t - window, 0)) : 0));
}

inline i64 bias_bytes(const AttentionShape& shape) { return shape.h * shape.places * 4; }

// The bias of a block of queries and keys: along a diagonal it is one number, so a strip of rows + kKeyBlock - 1 holds
// all; that of row r begins rows - 1 - r into it.
constexpr i64 kBiasStrip = kQueryBlock + kKeyBlock;

// Place in the bias of the strip's element 0; the next are one place further each. Clamped where it is used.
inline i64 first_place(const Masks& masks, i64 i0, i64 rows, i64 j0) {
  return j0 - (i0 + rows - 1) - masks.offset + masks.shape.origin;
}
inline i64 clamped_place(const Masks& masks, i64 place) {
  return place < 0 ? 0 : place < masks.shape.places ? place : masks.shape.places - 1;
}

// Scores [rows, kKeyBlock] of queries i0 … and keys j0 … plus the bias of one head, [places].
inline void add_bias(const Masks& masks, const float* bias, i64 i0, i64 rows, i64 j0, float* scores) {
  float strip[kBiasStrip];
  const i64 first = first_place(masks, i0, rows, j0);
  for (i64 x = 0; x < kBiasStrip; ++x) strip[x] = bias[clamped_place(masks, first + x)];
  for (i64 r = 0; r < rows; ++r) {
    float* row = scores + r * kKeyBlock;
    for (i64 c = 0; c < kKeyBlock; c += kLanes) store(row + c, load(row + c) + load(strip + rows - 1 - r + c));
  }
}

// dbias[places] plus the sums along the diagonals of d, [rows, kKeyBlock], which is 0 where nothing is seen.
inline void add_to_bias(const Masks& masks, const float* d, i64 i0, i64 rows, i64 j0, float* dbias) {
  float strip[kBiasStrip] = {};
  for (i64 r = 0; r < rows; ++r) {
    float* at = strip + rows - 1 - r;
    for (i64 c = 0; c < kKeyBlock; c += kLanes) store(at + c, load(at + c) + load(d + r * kKeyBlock + c));
  }
  const i64 first = first_place(masks, i0, rows, j0);
  for (i64 x = 0; x < rows + kKeyBlock - 1; ++x) dbias[clamped_place(masks, first + x)] += strip[x];
}

inline I lane_numbers() {
  I numbers;
  for (int i = 0; i < kLanes; ++i) numbers[i] = i;
  return numbers;
}

// Query i sees all of a whole block of keys.
inline bool sees_all(const Masks& masks, Sight sight, i64 i, i64 j0, i64 j1) {
  return sight == Sight::by_place && masks.keys(i) >= j1 && masks.first(i) <= j0 && j1 - j0 == kKeyBlock;
}

// All ones where query i sees key j0 + at + lane.
inline I seen(const Masks& masks, Sight sight, i64 i, i64 j0, i64 at, i64 j1) {
  const i64 limit = lesser(masks.keys(i), j1) - j0 - at;  // lanes below it
  const auto bound = static_cast<std::int32_t>(limit < 0 ? 0 : limit > kLanes ? kLanes : limit);
  I mask = lane_numbers() < (I{} + bound);
  if (const i64 hidden = masks.first(i) - j0 - at; hidden > 0) {
    mask &= lane_numbers() >= (I{} + static_cast<std::int32_t>(hidden > kLanes ? kLanes : hidden));
  }
  if (sight == Sight::by_segment && bound > 0) {
    I ids = {};
    const std::int32_t* from = masks.k_segments + j0 + at;
    if (j0 + at + kLanes <= masks.shape.s) {
      __builtin_memcpy(&ids, from, sizeof ids);
    } else {
      for (int lane = 0; lane < bound; ++lane) ids[lane] = from[lane];
    }
    mask &= ids == (I{} + masks.q_segments[i]);
  }
  return mask;
}

// Query i0 + r and key j0 + c see each other when c ≤ r + shift.
inline Band band_of(const Masks& masks, i64 i0, i64 j0) {
  return {masks.shape.causal ? i0 + masks.offset - j0 : masks.shape.s};
}

// `rows` rows of d elements, `stride` apart, to f32 rows of w (the rest 0), times factor.
template <typename T>
inline void widen_rows(const T* x, i64 stride, i64 rows, i64 d, i64 w, float factor, float* y) {
  for (i64 i = 0; i < rows; ++i) {
    for (i64 c = 0; c < w; c += kLanes) { store(y + i * w + c, c < d ? get(x + i * stride, c, d) * factor : F{}); }
  }
}

// The same transposed: y[c][i], rows of kKeyBlock, columns past `rows` 0. c < w.
template <typename T>
inline void widen_transposed(const T* x, i64 stride, i64 rows, i64 d, i64 w, float* y) {
  for (i64 i = 0; i < kKeyBlock; i += kLanes) {
    for (i64 c = 0; c < w; c += kLanes) {
      F tile[kLanes];
      for (int r = 0; r < kLanes; ++r) tile[r] = c < d && i + r < rows ? get(x + (i + r) * stride, c, d) : F{};
      transpose(tile);
      for (int r = 0; r < kLanes; ++r) store(y + (c + r) * kKeyBlock + i, tile[r]);
    }
  }
}

template <typename T>
inline void narrow_row(const float* x, i64 d, float factor, T* y) {
  for (i64 c = 0; c < d; c += kLanes) put(y, c, d, get(x, c, d) * factor);
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
