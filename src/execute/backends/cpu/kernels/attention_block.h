#pragma once
// Shared by attention, its gradient, and attention over pages: the visibility of pairs of a block of queries and a block
// of keys, the online softmax, and the conversion of rows of q, k, v to f32. For kernel sources only.

#include "execute/backends/cpu/kernels/attention.h"
#include "execute/backends/cpu/kernels/attention_gemm.h"
#include "execute/backends/cpu/kernels/row.h"
#include "execute/backends/cpu/kernels/transpose.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// The masks of one batch entry.
struct Masks {
  const AttentionShape& shape;
  const std::int32_t *q_segments, *k_segments;  // of this entry, or null
  bool has_offset;
  i64 offset;

  // Upper bound of the keys that query i sees: by shape alone, and by shape and offset.
  i64 keys_by_shape(i64 i) const { return shape.causal && !has_offset ? lesser(i + 1, shape.s) : shape.s; }
  i64 keys(i64 i) const { return shape.causal ? greater(0, lesser(i + 1 + offset, shape.s)) : shape.s; }
  // Lower bound of the keys that query i sees; never decreases with i.
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

// Visibility between a block of queries and a block of keys: none, and the block is skipped; by position alone (shape,
// offset, window; all segments equal); or by the segments of each pair too.
enum class BlockVisibility { none, by_position, by_segment };

inline BlockVisibility visibility_of(const Masks& masks, i64 i0, i64 i1, i64 j0, i64 j1) {
  if (masks.keys(i1 - 1) <= j0 || masks.first(i0) >= j1) return BlockVisibility::none;
  if (masks.q_segments == nullptr) return BlockVisibility::by_position;
  const Span q = span_of(masks.q_segments, i0, i1), k = span_of(masks.k_segments, j0, j1);
  if (q.high < k.low || k.high < q.low) return BlockVisibility::none;
  return q.low == q.high && k.low == k.high ? BlockVisibility::by_position : BlockVisibility::by_segment;
}

// Pairs of the block that offset, window and shape allow: the work of a block that is not skipped.
inline i64 pairs_of(const Masks& masks, i64 i0, i64 i1, i64 j0, i64 j1) {
  i64 pairs = 0;
  for (i64 i = i0; i < i1; ++i) pairs += greater(0, lesser(masks.keys(i), j1) - greater(masks.first(i), j0));
  return pairs;
}

// Pairs that the shape allows. An offset is data; a window bounds the number of keys per query for any offset.
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

// The bias of a block of queries and keys is constant along diagonals, so a strip of rows + kKeyBlock - 1 numbers holds
// it; row r starts at rows - 1 - r.
constexpr i64 kBiasStrip = kQueryBlock + kKeyBlock;

// Place in the bias of the strip's element 0; the following elements have the next places. Clamped at use.
inline i64 first_place(const Masks& masks, i64 i0, i64 rows, i64 j0) {
  return j0 - (i0 + rows - 1) - masks.offset + masks.shape.origin;
}
inline i64 clamped_place(const Masks& masks, i64 place) {
  return place < 0 ? 0 : place < masks.shape.places ? place : masks.shape.places - 1;
}

// Adds the bias of one head, [places], to scores [rows, kKeyBlock] of queries i0 … and keys j0 ….
inline void add_bias(const Masks& masks, const float* bias, i64 i0, i64 rows, i64 j0, float* scores) {
  float strip[kBiasStrip];
  const i64 first = first_place(masks, i0, rows, j0);
  for (i64 x = 0; x < kBiasStrip; ++x) strip[x] = bias[clamped_place(masks, first + x)];
  for (i64 r = 0; r < rows; ++r) {
    float* row = scores + r * kKeyBlock;
    for (i64 c = 0; c < kKeyBlock; c += kLanes) store(row + c, load(row + c) + load(strip + rows - 1 - r + c));
  }
}

// Adds the sums along the diagonals of d, [rows, kKeyBlock], to dbias[places]. d is 0 for pairs that are not visible.
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

// Whether query i sees every key of a full block of keys.
inline bool sees_all(const Masks& masks, BlockVisibility visibility, i64 i, i64 j0, i64 j1) {
  return visibility == BlockVisibility::by_position && masks.keys(i) >= j1 && masks.first(i) <= j0 &&
         j1 - j0 == kKeyBlock;
}

// All ones in the lanes whose key j0 + at + lane is visible to query i.
inline I seen(const Masks& masks, BlockVisibility visibility, i64 i, i64 j0, i64 at, i64 j1) {
  const i64 limit = lesser(masks.keys(i), j1) - j0 - at;  // lanes below it
  const auto bound = static_cast<std::int32_t>(limit < 0 ? 0 : limit > kLanes ? kLanes : limit);
  I mask = lane_numbers() < (I{} + bound);
  if (const i64 hidden = masks.first(i) - j0 - at; hidden > 0) {
    mask &= lane_numbers() >= (I{} + static_cast<std::int32_t>(hidden > kLanes ? kLanes : hidden));
  }
  if (visibility == BlockVisibility::by_segment && bound > 0) {
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

// The band of a block: query i0 + r sees key j0 + c if c ≤ r + shift.
inline Band band_of(const Masks& masks, i64 i0, i64 j0) {
  return {masks.shape.causal ? i0 + masks.offset - j0 : masks.shape.s};
}

// The online softmax of a block of scores [rows, kKeyBlock]. Per row: its maximum m and its sum of weights l so far.

// Raises m to the maximum of the block's masked scores. Returns the logarithm of the factor by which l and the weighted
// sums shrink.
inline float move_maximum(F block, float& m) {
  const float now = max_lanes(block), old = m;
  m = old < now || now != now ? now : old;
  return m == -kInf ? 0 : old - m;  // no key seen yet: the sums are empty
}

// The same for kLanes rows at once: block[r] of row r. A transpose instead of a fold per row.
inline F move_maxima_of(F (&block)[kLanes], float* m) {
  transpose(block);
#pragma GCC unroll 16
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < half; ++i) block[i] = max_nan(block[i], block[i + half]);
  }
  const F old = load(m), now = max_nan(old, block[0]);
  store(m, now);
  return blend(now == splat(-kInf), F{}, old - now);
}

// Rescales l and sums [rows, w] by e^factor. `factor`: padded to whole vectors; overwritten.
inline void rescale(i64 rows, i64 w, float* factor, float* l, float* sums) {
  for (i64 r = 0; r < rows; r += kLanes) store(factor + r, exp_flushed(load(factor + r)));
  for (i64 r = 0; r < rows; ++r) {
    l[r] *= factor[r];
    if (factor[r] == 1) continue;
    for (i64 c = 0; c < w; c += kLanes) store(sums + r * w + c, load(sums + r * w + c) * factor[r]);
  }
}

// Turns the scores of a row into weights, and returns their sums lane by lane.
inline F weights_of(float m, float* row) {
  const F shift = splat(m == -kInf ? 0 : m);
  F sum = {};
#pragma GCC unroll 8
  for (i64 c = 0; c < kKeyBlock; c += kLanes) {
    const F p = exp_flushed(load(row + c) - shift);
    store(row + c, p);
    sum += p;
  }
  return sum;
}

// Turns scores into weights, and adds them to l. The sums across lanes of kLanes rows are made at once, in fold's order.
inline void exponentiate(i64 rows, const float* m, float* scores, float* l) {
  i64 r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    F sums[kLanes];
    for (int i = 0; i < kLanes; ++i) sums[i] = weights_of(m[r + i], scores + (r + i) * kKeyBlock);
    transpose(sums);
#pragma GCC unroll 16
    for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
      for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    store(l + r, load(l + r) + sums[0]);
  }
  for (; r < rows; ++r) l[r] += sum_lanes(weights_of(m[r], scores + r * kKeyBlock));
}

// Converts `rows` rows of d elements, `stride` apart, to f32 rows of w (padded with 0), times factor.
template <typename T>
inline void widen_rows(const T* x, i64 stride, i64 rows, i64 d, i64 w, float factor, float* y) {
  for (i64 i = 0; i < rows; ++i) {
    for (i64 c = 0; c < w; c += kLanes) { store(y + i * w + c, c < d ? get(x + i * stride, c, d) * factor : F{}); }
  }
}

// The same, transposed: y[c][i], rows of kKeyBlock, columns past `rows` 0. c < w.
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
