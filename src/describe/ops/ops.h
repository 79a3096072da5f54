#pragma once
// The public ops. Each function appends a node to the graph of its first operand and returns its results. Shapes are
// strict: no implicit broadcasting, no implicit casts. Formula, constraints and facets of an op are in ops/<op>.cc.
//
// Legend: b batch, t query length, s key length, h heads, n kv_heads, d head, e embed, v vocab; `...` any dims.
// Errors of all: Failure(invalid), which names the violated constraint ("contract_c2: …").

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

// --- elementwise.cc: one operand of any float type; the result has the same type.
Value neg(Value x);
Value exp(Value x);
Value log(Value x);
Value tanh(Value x);
Value sigmoid(Value x);
Value gelu(Value x);       // x Φ(x), exact (erf)
Value gelu_tanh(Value x);  // the tanh approximation of GPT-2
Value silu(Value x);       // x sigmoid(x)
Value relu(Value x);
Value rsqrt(Value x);
Value sqrt(Value x);
Value is_finite(Value x);  // bool

// Two operands of one type. compare: `kind` is lt, le, gt, ge, eq or ne; the result is bool.
Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
Value div(Value a, Value b);
Value max(Value a, Value b);
Value min(Value a, Value b);
Value compare(Value a, Value b, std::string_view kind);
Value logical_and(Value a, Value b);                      // operands and result: bool
Value select(Value pred, Value if_true, Value if_false);  // pred: bool of the same shape
// Derivatives as ops: g times the derivative at x, in one pass. They can be fused.
Value gelu_grad(Value x, Value g);
Value gelu_tanh_grad(Value x, Value g);
Value silu_grad(Value x, Value g);

// --- cast.cc: conversion to nearest even. Returns x itself when it has the type.
Value cast(Value x, DType dtype);
// Stochastic rounding to bf16: up or down, unbiased. The random bits depend on the position of an element only: (seed,
// step, site, logical offset), all i64[]. `row` is the global index of x's first row on its outermost dim.
struct RandomKey {
  Value seed, step, site, row;
};
Value stochastic_round(Value x, const RandomKey& key);

// --- constant.cc
Value constant(Graph& graph, const Type& type, double value);
Value iota(Graph& graph, const Type& type, int dim);  // counts 0, 1, 2, … along `dim`
Value full_like(Value x, double value);               // constant of x's type
Value scale(Value x, double factor);                  // mul(x, full_like(x, factor))

// --- movement: broadcast.cc, reshape.cc, movement.cc, cache.cc, take_part.cc
// dims[i], ascending, is the dim of `type` for operand dim i, of the same size; the other dims of `type` are new.
Value broadcast(Value x, const Type& type, std::span<const int> dims);
Value broadcast_scalar(Value x, const Type& like);           // scalar to like's shape, in x's dtype
Value broadcast_last(Value x, const Type& like);             // vector along the last dim of `like`
Value reshape(Value x, const Type& type);                    // the same bytes; type.dtype must be x's
Value transpose(Value x, std::span<const int> permutation);  // result dim i is operand dim permutation[i]
Value slice(Value x, const Ints& start, const Ints& limit);  // half open, stride 1
Value slice_dim(Value x, int dim, std::int64_t start, std::int64_t limit);
Value concatenate(std::span<const Value> parts, int dim);
Value pad(Value x, const Ints& low, const Ints& high, double value);
Value copy(Value x);
// take_row(x[b, t, ...], index i32[b]) → [b, ...]: row index[b] of each batch entry; zeros when it is out of range.
Value take_row(Value x, Value index);
// Part `index` (i64[]) of `parts` equal parts along `dim`: take_part.cc.
Value take_part(Value x, Value index, int dim, std::int64_t parts);
// cache_write(cache[b, s, ...], rows[b, t, ...], position i32[b]) → the cache with `rows` at [position, position + t).
// Rows outside [0, s) are dropped. Overwrites the cache in place.
Value cache_write(Value cache, Value rows, Value position);

// --- paged.cc: a pool of pages, [p, z, ...]; position j of entry b is row j mod z of page table[b, j / z].
// page_write(pages, rows[b, t, ...], table i32[b, m], position i32[b]) → the pool with rows at position[b] + t. Rows at
// positions outside [0, m z), or of pages outside the pool, are dropped. Overwrites the pool in place.
Value page_write(Value pages, Value rows, Value table, Value position);
// paged_attention(q[b, t, h, d], k and v[p, z, n, d], table i32[b, m], offset i32[b]) → o[b, t, h, d] of q's type; k and
// v may have bf16 instead. Query i sees position j when j ≤ i + offset[b], and with a window > 0 only if i + offset[b] - j <
// window. Scores are scaled by 1/sqrt(d). Zeros for a query that sees nothing; a page outside the pool has zeros.
Value paged_attention(Value q, Value k, Value v, Value table, Value offset, std::int64_t window = 0);

// --- reduce.cc: reductions that remove `dims`. Sums of bf16 and f16 accumulate in f32. `dtype`: of the result, by
// default x's.
Value reduce_sum(Value x, std::span<const int> dims, std::optional<DType> dtype = {});
Value reduce_max(Value x, std::span<const int> dims);
Value reduce_min(Value x, std::span<const int> dims);
Value sum_all(Value x);                        // f32[] (f64[] for f64)
Value sum_of_squares(Value x);                 // f32[] (f64[] for f64)
Value global_norm(std::span<const Value> xs);  // sqrt of the sum of all squares; f32[] (f64[] for f64)

// --- contract.cc: einsum of two operands, "bse,ehd->bshd". A letter in both operands and the result is a batch dim; a
// letter in both operands only is summed; a letter in one operand and the result is kept; a letter in one operand only
// is not allowed. Accumulates in f32 (f64 for f64). `dtype`: of the result, by default a's.
Value contract(Value a, Value b, std::string_view spec, std::optional<DType> dtype = {});

// --- contract_int8.cc: x f32[..., k] times w i8[n, k], with scale f32[n] → f32[..., n]. Each row of x is quantised to
// int8; sums are exact, so a row's result has the same bits everywhere.
Value contract_int8(Value x, Value w, Value scale);
// scale[id] table[id] of table i8[v, e], scale f32[v] at ids i32[...] → f32[..., e]. An id outside [0, v) gives zeros.
Value embedding_int8(Value table, Value scale, Value ids);

// --- contract_int4.cc: x f32[..., k] times w u8[n / 16, k / 32, 256], with scale f16[n / 16, k / 32, 32]
// (ground/tensor/int4.h) → f32[..., n]. Each group of 32 of x is quantised to int8; a row has the same bits everywhere.
Value contract_int4(Value x, Value w, Value scale);

// --- lora_rows.cc: y f32[b, s, o] plus (x[b] a[k]^T) b[k], of x f32[b, s, i...], a f32[k, r, i] and b f32[k, r, o], with
// k = which[b] - 1; y's bits where there is no such adapter. Overwrites y in place.
Value lora_rows(Value x, Value y, Value a, Value b, Value which);

// --- softmax.cc: over the last dim, computed in f32. The result has x's type.
Value softmax(Value x);

// --- cross_entropy.cc: labels i32[...]; a negative label (-1) is ignored, with loss 0. Computed in f32.
struct CrossEntropy {
  Value loss;  // f32[...]: -log softmax(logits)[label] (f64 for f64)
  Value lse;   // f32[...]: log sum exp
};
CrossEntropy cross_entropy(Value logits, Value labels);  // logits[..., v]
// (softmax(logits) - onehot(labels)) * g, zeros where ignored, of logits' type. Overwrites the logits in place.
Value cross_entropy_grad(Value logits, Value labels, Value lse, Value g);

// --- rms_norm.cc, layer_norm.cc: over the last dim e. Statistics are f32[...] (f64 for f64); results have x's type.
struct RmsNorm {
  Value y, rstd;
};
RmsNorm rms_norm(Value x, Value scale, double eps);  // scale[e]
struct RmsNormGrad {
  Value dx, dscale;  // x's type; scale's type
};
RmsNormGrad rms_norm_grad(Value x, Value scale, Value rstd, Value g);
struct LayerNorm {
  Value y, mean, rstd;
};
LayerNorm layer_norm(Value x, Value scale, Value bias, double eps);
struct LayerNormGrad {
  Value dx, dscale, dbias;
};
LayerNormGrad layer_norm_grad(Value x, Value scale, Value mean, Value rstd, Value g);

// --- embedding.cc: rows of table[v, e] at ids i32[...] → [..., e]. An id outside [0, v) gives zeros.
Value embedding(Value table, Value ids);
// Scatter-add of g[..., e] into `vocab` rows, in a fixed order. `dtype`: of the result, f32 or f64 (for f64).
Value embedding_grad(Value ids, Value g, std::int64_t vocab, DType dtype, const std::string& vocab_name);

// --- rotary.cc: x[b, t, h, d], d even, at positions i32[b, t]. Rotates the pairs (x_i, x_{i + d/2}), as GPT-NeoX and
// Llama do.
// Llama 3.1 frequency scaling, by wavelength: above original_context / low_freq_factor frequencies are divided by
// `factor`; below original_context / high_freq_factor they are kept; between, the two are blended.
struct RotaryScaling {
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_context = 8192;
};
struct RotaryOptions {
  double theta = 10000;
  std::optional<RotaryScaling> scaling = {};
  bool inverse = false;  // rotates back
};
Value rotary(Value x, Value positions, const RotaryOptions& options);

// --- attention.cc: softmax(q kᵀ scale + mask) v with grouped queries (h a multiple of n), memory linear in s.
struct AttentionOptions {
  bool causal = true;                           // query i sees key j when j ≤ i + offset[b] (offset 0 when absent)
  double scale = 0;                             // 0: 1/sqrt(d)
  std::optional<Value> q_segments, k_segments;  // i32[b, t], i32[b, s]: a query sees keys with its id only
  std::optional<Value> offset;                  // i32[b]: index of query 0 among the keys (decoding with a cache)
  std::int64_t window = 0;                      // > 0: sliding window, only keys with i + offset[b] - j < window
  // f32[h, m] (f64 for f64): element clamp(j - i - offset[b] + bias_origin, 0, m - 1) is added to the score.
  std::optional<Value> bias_by_distance = {};
  std::int64_t bias_origin = 0;
  std::int64_t zigzag = 0;  // > 0: queries and keys lie in zigzag order of so many parts (zigzag.h)
  bool ring = false;        // with zigzag: keys go round a ring of devices; else they are gathered
  std::int64_t value = 0;   // > 0: data width of v; the rest of d is zero padding, not model work
};
struct Attention {
  Value o;    // [b, t, h, d] of q's type; zeros for a query that sees no key
  Value lse;  // f32[b, h, t]; -inf for a query that sees no key
};
Attention attention(Value q, Value k, Value v, const AttentionOptions& options);  // q[b,t,h,d] k,v[b,s,n,d]
struct AttentionGrad {
  Value dq, dk, dv;
  std::optional<Value> dbias;  // present with bias_by_distance, of its type
};
AttentionGrad attention_grad(Value q, Value k, Value v, Value o, Value lse, Value g, const AttentionOptions& options);

// --- dropout.cc: x / (1 - rate) for kept elements, else 0. The gradient is the same op on g with the same key.
Value dropout(Value x, const RandomKey& key, double rate);

// --- adamw.cc, sgd.cc: new parameter and state, which overwrite the old in place. `scale` f32[] multiplies g
// (clipping, division by the label count); `rate` f32[] is the learning rate. If `apply` bool[] is false, nothing
// changes.
struct Adamw {
  Value parameter, m, v;
};
struct AdamwOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};
Adamw adamw(Value parameter, Value g, Value m, Value v, Value scale, Value rate, Value count, Value apply,
            const AdamwOptions& options);  // count i32[]: number of updates, this one included
struct SgdOptions {
  double momentum = 0, weight_decay = 0;
};
struct Sgd {
  Value parameter;
  std::optional<Value> m;  // present with momentum
};
Sgd sgd(Value parameter, Value g, std::optional<Value> m, Value scale, Value rate, Value apply,
        const SgdOptions& options);

// --- collectives.cc: over a mesh axis of `parts` devices. kind is sum or max. Sums of bf16 accumulate in f32.
Value all_reduce(Value x, std::string_view axis, std::int64_t parts, std::string_view kind = "sum");
Value all_gather(Value x, std::string_view axis, std::int64_t parts, int dim);
Value reduce_scatter(Value x, std::string_view axis, std::int64_t parts, int dim, std::string_view kind = "sum");
Value all_to_all(Value x, std::string_view axis, std::int64_t parts, int split_dim, int concat_dim);
Value collective_permute(Value x, std::string_view axis, std::int64_t parts, std::int64_t by);

// --- transfer.cc: between pipeline stages. A device sends to the one `by` further along the axis, cyclically, and
// receives from the one `by` before. Both sides name the value `value`; a different name is an error.
Value send(Value x, std::string_view axis, std::int64_t parts, std::int64_t by, std::string_view value = "");
Value receive(Graph& graph, const Type& type, std::string_view axis, std::int64_t parts, std::int64_t by,
              std::string_view value = "");

// --- repeat.cc: runs the body `count` times. It takes (carries..., slices of `stacked`..., shared...) and gives
// (carries..., outputs...). Slices and outputs lie on a new outermost dim named `dim`. `reverse` iterates from the last
// index to the first.
struct Repeat {
  std::vector<Value> carries;
  std::vector<Value> outputs;  // stacked
};
Repeat repeat(Graph body, std::int64_t count, std::span<const Value> carries, std::span<const Value> stacked,
              std::span<const Value> shared, std::string_view dim = "layer", bool reverse = false);

}  // namespace systole
