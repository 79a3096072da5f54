// attention_grad. A part is one batch entry and kv head and owns its dk and dv, so no two parts add to the same
// element. Keys and values are packed once. Then each query head of the group goes over its blocks of 64 queries, and
// each block over the blocks of 64 keys (scores are recomputed from lse; nothing has size t × s):
//
//   P = e^(scale Q Kᵀ - lse)     T = P ∘ (G Vᵀ - Δ), Δ = rowsum(o ∘ g)
// (The scores include the bias by distance. Its gradient is the sums of T along its diagonals, per batch entry and
// head; one thread adds up the batch at the end, in order.)
//
//   dv += Pᵀ G      dk += Tᵀ (scale Q)      dq = scale T K
//
// Roofline: the f32 multiply-add rate, 10 d flops per pair.

#include "execute/backends/cpu/kernels/attention_block.h"
#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

struct Scratch {
  float *keys, *keys_t, *values_t;  // keys [s, w]; transposed: for each block [w, kKeyBlock]
  float *dk, *dv;                   // [s, w]
  float *queries, *g, *dq;          // [kQueryBlock, w]; queries times scale
  float *p, *dp;                    // [kQueryBlock, kKeyBlock]
  float *delta, *lse;               // [kQueryBlock]
};

Scratch scratch_of(const AttentionGradArgs& args, int thread) {
  const i64 w = padded_head(args.shape.d), all = ceil_div(args.shape.s, kKeyBlock) * kKeyBlock * w;
  float* at =
      reinterpret_cast<float*>(static_cast<char*>(args.workspace) + thread * attention_grad_workspace(args.shape, 1));
  auto take = [&](i64 n) {
    float* here = at;
    at += n;
    return here;
  };
  Scratch s;
  s.keys = take(all);
  s.keys_t = take(all);
  s.values_t = take(all);
  s.dk = take(all);
  s.dv = take(all);
  s.queries = take(kQueryBlock * w);
  s.g = take(kQueryBlock * w);
  s.dq = take(kQueryBlock * w);
  s.p = take(kQueryBlock * kKeyBlock);
  s.dp = take(kQueryBlock * kKeyBlock);
  s.delta = take(kQueryBlock);
  s.lse = take(kQueryBlock);
  return s;
}

// [b, h, places]
float* partial_bias(const AttentionGradArgs& args) {
  return reinterpret_cast<float*>(static_cast<char*>(args.workspace) +
                                  attention_grad_workspace(args.shape, args.threads));
}

void sum_bias(const AttentionGradArgs& args) {
  const i64 all = args.shape.h * args.shape.places;
  const float* partial = partial_bias(args);
  for (i64 i = 0; i < all; ++i) {
    float sum = 0;
    for (i64 b = 0; b < args.shape.b; ++b) sum += partial[b * all + i];
    args.dbias[i] = sum;
  }
}

// p: scores to probabilities. dp: G Vᵀ to T.
void probabilities(const Masks& masks, BlockVisibility visibility, const Scratch& s, i64 i0, i64 rows, i64 j0, i64 j1) {
  for (i64 r = 0; r < rows; ++r) {
    float *p = s.p + r * kKeyBlock, *dp = s.dp + r * kKeyBlock;
    const bool nothing = s.lse[r] == -kInf;
    const bool whole = !nothing && sees_all(masks, visibility, i0 + r, j0, j1);
    for (i64 c = 0; c < kKeyBlock; c += kLanes) {
      F v = exp_flushed(load(p + c) - s.lse[r]);
      F t = v * (load(dp + c) - s.delta[r]);
      if (!whole) {
        const I mask = nothing ? I{} : seen(masks, visibility, i0 + r, j0, c, j1);
        v = blend(mask, v, F{});
        t = blend(mask, t, F{});
      }
      store(p + c, v);
      store(dp + c, t);
    }
  }
}

template <typename T>
void load_queries(const AttentionGradArgs& args, const Scratch& s, i64 b, i64 head, i64 i0, i64 rows) {
  const AttentionShape& z = args.shape;
  const i64 w = padded_head(z.d), at = ((b * z.t + i0) * z.h + head) * z.d, stride = z.h * z.d;
  const T *o = static_cast<const T*>(args.o) + at, *g = static_cast<const T*>(args.g) + at;
  widen_rows(static_cast<const T*>(args.q) + at, stride, rows, z.d, w, static_cast<float>(z.scale), s.queries);
  widen_rows(g, stride, rows, z.d, w, 1.0f, s.g);
  for (i64 r = 0; r < rows; ++r) {
    s.delta[r] = row_sum(z.d, [&](i64 c) { return get(o + r * stride, c, z.d) * get(g + r * stride, c, z.d); });
    s.lse[r] = args.lse[(b * z.h + head) * z.t + i0 + r];
  }
}

// One block of queries against all keys that it sees. Returns the number of pairs computed.
template <typename T>
i64 query_block(const AttentionGradArgs& args, const Masks& masks, const Scratch& s, i64 b, i64 head, i64 i0, i64 rows,
                float* dbias) {
  const AttentionShape& z = args.shape;
  const i64 w = padded_head(z.d);
  load_queries<T>(args, s, b, head, i0, rows);
  for (i64 i = 0; i < rows * w; i += kLanes) store(s.dq + i, F{});
  i64 pairs = 0;
  for (i64 j0 = 0; j0 < masks.keys(i0 + rows - 1); j0 += kKeyBlock) {
    const i64 j1 = lesser(z.s, j0 + kKeyBlock), keys = j1 - j0;
    const BlockVisibility visibility = visibility_of(masks, i0, i0 + rows, j0, j1);
    if (visibility == BlockVisibility::none) continue;
    const Band band = band_of(masks, i0, j0);
    const auto columns = [&](i64 i, i64 n) { return band.columns(i, n, kKeyBlock, z.d); };
    const auto by_query = [&](i64 i, i64) { return band.queries(i, w, rows); };
    product({s.queries, w, 1}, s.keys_t + j0 * w, kKeyBlock, s.p, kKeyBlock, rows, false, columns);
    if (args.bias != nullptr) add_bias(masks, args.bias + head * z.places, i0, rows, j0, s.p);
    product({s.g, w, 1}, s.values_t + j0 * w, kKeyBlock, s.dp, kKeyBlock, rows, false, columns);
    probabilities(masks, visibility, s, i0, rows, j0, j1);
    if (args.bias != nullptr) add_to_bias(masks, s.dp, i0, rows, j0, dbias);
    product({s.p, 1, kKeyBlock}, s.g, w, s.dv + j0 * w, w, keys, true, by_query);
    product({s.dp, 1, kKeyBlock}, s.queries, w, s.dk + j0 * w, w, keys, true, by_query);
    product({s.dp, kKeyBlock, 1}, s.keys + j0 * w, w, s.dq, w, rows, true,
            [&](i64 i, i64 n) { return band.keys(i, n, w, keys); });
    pairs += pairs_of(masks, i0, i0 + rows, j0, j1);
  }
  for (i64 r = 0; r < rows; ++r) {
    T* dq = static_cast<T*>(args.dq) + ((b * z.t + i0 + r) * z.h + head) * z.d;
    narrow_row(s.dq + r * w, z.d, static_cast<float>(z.scale), dq);
  }
  return pairs;
}

template <typename T>
i64 kv_head(const AttentionGradArgs& args, const Scratch& s, i64 b, i64 kv) {
  const AttentionShape& z = args.shape;
  const Masks masks = masks_of(args, b);
  const i64 w = padded_head(z.d), stride = z.n * z.d, group = z.h / z.n, base = (b * z.s * z.n + kv) * z.d;
  const T *k = static_cast<const T*>(args.k) + base, *v = static_cast<const T*>(args.v) + base;
  for (i64 j0 = 0; j0 < z.s; j0 += kKeyBlock) {
    const i64 keys = lesser(kKeyBlock, z.s - j0);
    widen_rows(k + j0 * stride, stride, keys, z.d, w, 1.0f, s.keys + j0 * w);
    widen_transposed(k + j0 * stride, stride, keys, z.d, w, s.keys_t + j0 * w);
    widen_transposed(v + j0 * stride, stride, keys, z.d, w, s.values_t + j0 * w);
  }
  for (i64 i = 0; i < z.s * w; i += kLanes) {
    store(s.dk + i, F{});
    store(s.dv + i, F{});
  }
  i64 pairs = 0;
  for (i64 head = kv * group; head < (kv + 1) * group; ++head) {
    float* dbias = partial_bias(args) + (b * z.h + head) * z.places;
    for (i64 m = 0; m < z.places; ++m) dbias[m] = 0;
    for (i64 i0 = 0; i0 < z.t; i0 += kQueryBlock)
      pairs += query_block<T>(args, masks, s, b, head, i0, lesser(kQueryBlock, z.t - i0), dbias);
  }
  for (i64 j = 0; j < z.s; ++j) {
    narrow_row(s.dk + j * w, z.d, 1.0f, static_cast<T*>(args.dk) + base + j * stride);
    narrow_row(s.dv + j * w, z.d, 1.0f, static_cast<T*>(args.dv) + base + j * stride);
  }
  return pairs;
}

}  // namespace

KernelReport attention_grad(const AttentionGradArgs& args) {
  const AttentionShape& z = args.shape;
  i64 pairs = 0;
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    parallel(args.threads, z.b * z.n, Schedule::cyclic, [&](i64 part, int thread) {
      const i64 done = kv_head<T>(args, scratch_of(args, thread), part / z.n, part % z.n);
      __atomic_fetch_add(&pairs, done, __ATOMIC_RELAXED);
    });
  });
  if (args.bias != nullptr) sum_bias(args);
  const i64 queries = z.b * z.h * z.t, skipped = all_pairs(z, args.offset != nullptr) - pairs,
            elem = size_of(args.elem);
  const i64 mask_bytes =
      (args.q_segments == nullptr ? 0 : z.b * (z.t + z.s) * 4) + (args.offset == nullptr ? 0 : z.b * 4) + bias_bytes(z);
  const i64 of_pair = 10 * z.d + 5 + (args.bias == nullptr ? 0 : 2);
  const i64 q_bytes = queries * z.d * elem, kv_bytes = 2 * z.b * z.s * z.n * z.d * elem;
  return {pairs * of_pair + queries * 2 * z.d,
          pairs,
          skipped * of_pair,
          skipped,
          3 * q_bytes + kv_bytes + queries * 4 + mask_bytes,
          q_bytes + kv_bytes + bias_bytes(z)};
}

}  // namespace systole::cpu::SYSTOLE_ISA
