#pragma once
// The public ops, as functions that append a node to the graph of their first operand and return its results. Shapes
// are strict: no hidden broadcasting, no hidden casts. Each op's formula, constraints and facets are in ops/<op>.cc.
//
// Legend: b batch, t query length, s key length, h heads, n kv_heads, d head, e embed, v vocab; `...` any dims.
// Errors of all: Failure(invalid) that names the violated constraint ("contract_c2: …").

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

// --- elementwise.cc: one operand, any float type, result of the same type.
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

// Two operands of one type; `kind` of compare is lt, le, gt, ge, eq or ne and its result bool.
Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
Value div(Value a, Value b);
Value max(Value a, Value b);
Value min(Value a, Value b);
Value compare(Value a, Value b, std::string_view kind);
Value logical_and(Value a, Value b);                      // of bools
Value select(Value pred, Value if_true, Value if_false);  // pred: bool of the same shape
// Derivatives as ops of their own: g times the derivative at x (one pass, and what a chain is made of).
Value gelu_grad(Value x, Value g);
Value gelu_tanh_grad(Value x, Value g);
Value silu_grad(Value x, Value g);

// --- cast.cc: to another type, nearest even; nothing happens (x itself) when it has the type.
Value cast(Value x, DType dtype);
// To bf16, up or down with the probability that makes it exact in the mean. Random bits belong to the element's place:
// (seed, step, site, logical offset), all i64[]; row is the global index of x's first row on its outermost dim.
struct RandomKey {
  Value seed, step, site, row;
};
Value stochastic_round(Value x, const RandomKey& key);

// --- constant.cc
Value constant(Graph& graph, const Type& type, double value);
Value iota(Graph& graph, const Type& type, int dim);  // counts along `dim`
Value full_like(Value x, double value);               // constant of x's type
Value scale(Value x, double factor);                  // mul(x, full_like(x, factor))

// --- movement: broadcast.cc, reshape.cc, transpose.cc, slice.cc, concatenate.cc, pad.cc, copy.cc
// dims[i] is where operand dim i goes in `type` (ascending); the others are new or, where the operand's size is 1, …
// must match.
Value broadcast(Value x, const Type& type, std::span<const int> dims);
Value broadcast_scalar(Value x, const Type& like);           // scalar to like's shape (x's dtype)
Value broadcast_last(Value x, const Type& like);             // vector along the last dim of `like`
Value reshape(Value x, const Type& type);                    // same bytes; type.dtype is x's
Value transpose(Value x, std::span<const int> permutation);  // result dim i is operand dim permutation[i]
Value slice(Value x, const Ints& start, const Ints& limit);  // half open, stride 1
Value slice_dim(Value x, int dim, std::int64_t start, std::int64_t limit);
Value concatenate(std::span<const Value> parts, int dim);
Value pad(Value x, const Ints& low, const Ints& high, double value);
Value copy(Value x);
// take_row(x[b, t, ...], index i32[b]) → [b, ...]: row index[b] of each batch entry (zeros when out of range).
Value take_row(Value x, Value index);
// Part `index` (i64[]) of `parts` equal ones along dim: take_part.cc.
Value take_part(Value x, Value index, int dim, std::int64_t parts);
// cache_write(cache[b, s, ...], rows[b, t, ...], position i32[b]) → cache with rows at [position, position + t); rows
// beyond s are dropped. In place of the cache.
Value cache_write(Value cache, Value rows, Value position);

// --- reduce.cc: over `dims`, which go. Sums of bf16 and f16 are accumulated in f32. `dtype` of the result, else x's.
Value reduce_sum(Value x, std::span<const int> dims, std::optional<DType> dtype = {});
Value reduce_max(Value x, std::span<const int> dims);
Value reduce_min(Value x, std::span<const int> dims);
Value sum_all(Value x);                        // to f32[] (f64[] of f64)
Value sum_of_squares(Value x);                 // to f32[] (f64[] of f64)
Value global_norm(std::span<const Value> xs);  // sqrt of the sum of all squares; f32[] (f64[])

// --- contract.cc: einsum of two operands, "bse,ehd->bshd". A letter in both and in the result is a batch dim, in both
// only is summed, in one and the result is kept; a letter in one operand only is not allowed. Accumulates in f32 (f64
// for f64). `dtype` of the result, else a's.
Value contract(Value a, Value b, std::string_view spec, std::optional<DType> dtype = {});

// --- softmax.cc: over the last dim, in f32 inside. Result of x's type.
Value softmax(Value x);

// --- cross_entropy.cc: labels i32[...], -1 (any negative) ignored → loss 0. In f32 inside.
struct CrossEntropy {
  Value loss;  // f32[...]: -log softmax(logits)[label] (f64 for f64)
  Value lse;   // f32[...]: log sum exp
};
CrossEntropy cross_entropy(Value logits, Value labels);  // logits[..., v]
// (softmax(logits) - onehot(labels)) * g, zeros where ignored; in place of the logits; of logits' type.
Value cross_entropy_grad(Value logits, Value labels, Value lse, Value g);

// --- rms_norm.cc, layer_norm.cc: over the last dim e; statistics f32[...] (f64 for f64), result of x's type.
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

// --- embedding.cc: rows of table[v, e] at ids i32[...] → [..., e]; an id outside [0, v) gives zeros.
Value embedding(Value table, Value ids);
// Scatter-add of g[..., e] into `vocab` rows, in a fixed order; result of type `dtype` (f32 unless f64).
Value embedding_grad(Value ids, Value g, std::int64_t vocab, DType dtype, const std::string& vocab_name);

// --- rotary.cc: x[b, t, h, d], d even, positions i32[b, t]; halves rotated (x_i, x_{i + d/2}) as GPT-NeoX and Llama
// do.
// Llama 3.1's stretching of the frequencies (wavelengths): above original_context / low_freq_factor divided by factor,
// below original_context / high_freq_factor kept, between them blended.
struct RotaryScaling {
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_context = 8192;
};
struct RotaryOptions {
  double theta = 10000;
  std::optional<RotaryScaling> scaling = {};
  bool inverse = false;  // turns back
};
Value rotary(Value x, Value positions, const RotaryOptions& options);

// --- attention.cc: softmax(q kᵀ scale + mask) v with grouped queries (h a multiple of n), memory linear in s.
struct AttentionOptions {
  bool causal = true;  // key j is seen by query i when j ≤ i + offset[b] (offset 0 when absent)
  double scale = 0;    // 0: 1/sqrt(d)
  std::optional<Value> q_segments, k_segments;  // i32[b, t], i32[b, s]: only equal ids see each other
  std::optional<Value> offset;                  // i32[b]: index of query 0 among the keys (decoding over a cache)
  std::int64_t window = 0;                      // > 0: of those keys the last so many: i + offset[b] - j < window
  // f32[h, m] (f64 for f64): its element at clamp(j - i - offset[b] + bias_origin, 0, m - 1) is added to the score.
  std::optional<Value> bias_by_distance = {};
  std::int64_t bias_origin = 0;
  std::int64_t zigzag = 0;  // > 0: queries and keys lie in zigzag order of so many parts (zigzag.h)
  bool ring = false;        // with zigzag: a device's keys go round to the others, else they are gathered
  std::int64_t value = 0;   // > 0: of v's d so many are data and the rest are zeros, which are no model's work
};
struct Attention {
  Value o;    // [b, t, h, d] of q's type; zeros where nothing is seen
  Value lse;  // f32[b, h, t]; -inf where nothing is seen
};
Attention attention(Value q, Value k, Value v, const AttentionOptions& options);  // q[b,t,h,d] k,v[b,s,n,d]
struct AttentionGrad {
  Value dq, dk, dv;
  std::optional<Value> dbias;  // like bias_by_distance, with it
};
AttentionGrad attention_grad(Value q, Value k, Value v, Value o, Value lse, Value g, const AttentionOptions& options);

// --- dropout.cc: x / (1 - rate) where kept, else 0; its gradient is itself on g with the same key.
Value dropout(Value x, const RandomKey& key, double rate);

// --- adamw.cc, sgd.cc: new parameter and state, in place of the old. g is scaled by `scale` f32[] (clipping and the
// division by the label count), `rate` f32[] the learning rate; nothing changes where `apply` bool[] is false.
struct Adamw {
  Value parameter, m, v;
};
struct AdamwOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};
Adamw adamw(Value parameter, Value g, Value m, Value v, Value scale, Value rate, Value count, Value apply,
            const AdamwOptions& options);  // count i32[]: updates applied, this one included
struct SgdOptions {
  double momentum = 0, weight_decay = 0;
};
struct Sgd {
  Value parameter;
  std::optional<Value> m;  // with momentum
};
Sgd sgd(Value parameter, Value g, std::optional<Value> m, Value scale, Value rate, Value apply,
        const SgdOptions& options);

// --- collectives.cc: over a mesh axis of `parts` devices. kind is sum or max; sums of bf16 accumulate in f32.
Value all_reduce(Value x, std::string_view axis, std::int64_t parts, std::string_view kind = "sum");
Value all_gather(Value x, std::string_view axis, std::int64_t parts, int dim);
Value reduce_scatter(Value x, std::string_view axis, std::int64_t parts, int dim, std::string_view kind = "sum");
Value all_to_all(Value x, std::string_view axis, std::int64_t parts, int split_dim, int concat_dim);
Value collective_permute(Value x, std::string_view axis, std::int64_t parts, std::int64_t by);

// --- transfer.cc: between the stages of a pipeline, to the device `by` further along the axis, from the one `by`
// before. `value`: what goes, by a name that both have for it; what arrives under another is an error.
Value send(Value x, std::string_view axis, std::int64_t parts, std::int64_t by, std::string_view value = "");
Value receive(Graph& graph, const Type& type, std::string_view axis, std::int64_t parts, std::int64_t by,
              std::string_view value = "");

// --- repeat.cc: `count` times the body, which takes (carries..., slices of `stacked`..., shared...) and gives
// (carries..., outputs...). Slices and outputs lie on a new outermost dim named `dim`; `reverse` goes from the last
// index to the first.
struct Repeat {
  std::vector<Value> carries;
  std::vector<Value> outputs;  // stacked
};
Repeat repeat(Graph body, std::int64_t count, std::span<const Value> carries, std::span<const Value> stacked,
              std::span<const Value> shared, std::string_view dim = "layer", bool reverse = false);

}  // namespace systole
