// attention forward. A part is one head and a chunk of 256 queries. It goes over the keys in blocks of 64, packs each
// block once (keys transposed, values unchanged, both f32), and combines it with every block of 64 queries of the
// chunk:
//
//   S = (scale Q) Kᵀ      m' = max(m, rowmax S)      P = e^(S - m')      l' = l e^(m - m') + rowsum P
//   O' = O e^(m - m') + P V            at the end      o = O / l,  lse = m + ln l
//
// Fully masked blocks are skipped. Roofline: the f32 multiply-add rate (4 d flops per pair) with one exponential per
// pair: at d = 64 a quarter of the time.

#include "execute/backends/cpu/kernels/attention_block.h"
#include "execute/backends/cpu/kernels/entry.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

struct Scratch {
  float *keys, *values;   // [w, kKeyBlock], [kKeyBlock, w]
  float* scores;          // [kQueryBlock, kKeyBlock]
  float *queries, *sums;  // [kQueryChunk, w]
  float *top, *weight;    // [kQueryChunk]: m and l
};

Scratch scratch_of(const AttentionArgs& args, int thread) {
  const i64 w = padded_head(args.shape.d);
  float* at =
      reinterpret_cast<float*>(static_cast<char*>(args.workspace) + thread * attention_workspace(args.shape, 1));
  Scratch s;
  s.keys = at;
  s.values = s.keys + kKeyBlock * w;
  s.scores = s.values + kKeyBlock * w;
  s.queries = s.scores + kQueryBlock * kKeyBlock;
  s.sums = s.queries + kQueryChunk * w;
  s.top = s.sums + kQueryChunk * w;
  s.weight = s.top + kQueryChunk;
  return s;
}

// Masks the scores of queries [i0, i0 + rows), updates their maxima, and rescales the sums to the new maxima.
void move_maxima(const Masks& masks, BlockVisibility visibility, const Scratch& s, i64 i0, i64 rows, i64 j0, i64 j1,
                 float* top, float* weight, float* sums, i64 w) {
  float factor[kQueryBlock] = {};
  for (i64 r = 0; r < rows; ++r) {
    float* row = s.scores + r * kKeyBlock;
    F best = splat(-kInf);
    const bool whole = sees_all(masks, visibility, i0 + r, j0, j1);
    for (i64 c = 0; c < kKeyBlock; c += kLanes) {
      F v = load(row + c);
      if (!whole) {
        v = blend(seen(masks, visibility, i0 + r, j0, c, j1), v, splat(-kInf));
        store(row + c, v);
      }
      best = max_nan(best, v);
    }
    factor[r] = move_maximum(best, top[r]);
  }
  rescale(rows, w, factor, weight, sums);
}

template <typename T>
void finish(const AttentionArgs& args, const Scratch& s, i64 b, i64 head, i64 first, i64 count) {
  const AttentionShape& z = args.shape;
  const i64 w = padded_head(z.d);
  for (i64 r = 0; r < count; ++r) {
    const float l = s.weight[r], divisor = l == 0 ? 1 : l;
    T* o = static_cast<T*>(args.o) + ((b * z.t + first + r) * z.h + head) * z.d;
    for (i64 c = 0; c < z.d; c += kLanes) put(o, c, z.d, get(s.sums + r * w, c, z.d) / divisor);
  }
  for (i64 r = 0; r < count; r += kLanes) {
    const F m = load(s.top + r), lse = blend(m == splat(-kInf), m, m + log_f(load(s.weight + r)));
    put(args.lse + (b * z.h + head) * z.t + first, r, count, lse);
  }
}

// Returns the number of pairs computed.
template <typename T>
i64 chunk(const AttentionArgs& args, const Scratch& s, i64 b, i64 head, i64 first, i64 count) {
  const AttentionShape& z = args.shape;
  const Masks masks = masks_of(args, b);
  const i64 w = padded_head(z.d), kv = head / (z.h / z.n);
  const T* q = static_cast<const T*>(args.q) + ((b * z.t + first) * z.h + head) * z.d;
  widen_rows(q, z.h * z.d, count, z.d, w, static_cast<float>(z.scale), s.queries);
  for (i64 i = 0; i < count * w; i += kLanes) store(s.sums + i, F{});
  for (i64 r = 0; r < kQueryChunk; ++r) {
    s.top[r] = -kInf;
    s.weight[r] = 0;
  }
  i64 pairs = 0;
  for (i64 j0 = 0; j0 < masks.keys(first + count - 1); j0 += kKeyBlock) {
    const i64 j1 = lesser(z.s, j0 + kKeyBlock), at = ((b * z.s + j0) * z.n + kv) * z.d;
    bool packed = false;
    for (i64 r = 0; r < count; r += kQueryBlock) {
      const i64 rows = lesser(kQueryBlock, count - r), i0 = first + r;
      const BlockVisibility visibility = visibility_of(masks, i0, i0 + rows, j0, j1);
      if (visibility == BlockVisibility::none) continue;
      if (!packed) {
        widen_transposed(static_cast<const T*>(args.k) + at, z.n * z.d, j1 - j0, z.d, w, s.keys);
        widen_rows(static_cast<const T*>(args.v) + at, z.n * z.d, j1 - j0, z.d, w, 1.0f, s.values);
        packed = true;
      }
      const Band band = band_of(masks, i0, j0);
      product({s.queries + r * w, w, 1}, s.keys, kKeyBlock, s.scores, kKeyBlock, rows, false,
              [&](i64 i, i64 n) { return band.columns(i, n, kKeyBlock, z.d); });
      if (args.bias != nullptr) add_bias(masks, args.bias + head * z.places, i0, rows, j0, s.scores);
      move_maxima(masks, visibility, s, i0, rows, j0, j1, s.top + r, s.weight + r, s.sums + r * w, w);
      exponentiate(rows, s.top + r, s.scores, s.weight + r);
      product({s.scores, kKeyBlock, 1}, s.values, w, s.sums + r * w, w, rows, true,
              [&](i64 i, i64 n) { return band.keys(i, n, w, j1 - j0); });
      pairs += pairs_of(masks, i0, i0 + rows, j0, j1);
    }
  }
  finish<T>(args, s, b, head, first, count);
  return pairs;
}

}  // namespace

KernelReport attention(const AttentionArgs& args) {
  const AttentionShape& z = args.shape;
  const i64 heads = z.b * z.h, chunks = ceil_div(z.t, kQueryChunk);
  i64 pairs = 0;
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    parallel(args.threads, heads * chunks, Schedule::cyclic, [&](i64 part, int thread) {
      const i64 first = part / heads * kQueryChunk, b = part % heads / z.h, head = part % z.h;
      const i64 done = chunk<T>(args, scratch_of(args, thread), b, head, first, lesser(kQueryChunk, z.t - first));
      __atomic_fetch_add(&pairs, done, __ATOMIC_RELAXED);
    });
  });
  const i64 queries = heads * z.t, skipped = all_pairs(z, args.offset != nullptr) - pairs, elem = size_of(args.elem);
  const i64 mask_bytes =
      (args.q_segments == nullptr ? 0 : z.b * (z.t + z.s) * 4) + (args.offset == nullptr ? 0 : z.b * 4) + bias_bytes(z);
  const i64 of_pair = 4 * z.d + 3 + (args.bias == nullptr ? 0 : 1);
  return {pairs * of_pair + queries * (z.d + 1),
          pairs + queries,
          skipped * of_pair,
          skipped,
          (queries + 2 * z.b * z.s * z.n) * z.d * elem + mask_bytes,
          queries * (z.d * elem + 4)};
}

}  // namespace systole::cpu::SYSTOLE_ISA
