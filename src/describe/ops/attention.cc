// attention with grouped queries (Vaswani et al., arXiv:1706.03762; Ainslie et al., arXiv:2305.13245).
// attention_grad.cc has its gradient.
//
//   s_ij = scale q_i·k_j           for each key j that query i sees
//   lse_i = ln Σ_j e^s_ij          o_i = Σ_j p_ij v_j        p_ij = e^(s_ij - lse_i)
//
//   Δ_i = o_i·g_i                  ds_ij = p_ij (g_i·v_j - Δ_i) scale
//   dq_i = Σ_j ds_ij k_j           dk_j = Σ_i ds_ij q_i      dv_j = Σ_i p_ij g_i
//
// No value has size t × s: the gradient recomputes the scores from q, k and lse (Dao et al., arXiv:2205.14135). Head a
// of q uses head a / (h / n) of k and v. Query i sees key j when all requested conditions hold:
//   causal      j ≤ i + offset[b]          (offset 0 without the operand)
//   window      i + offset[b] - j < window (a sliding window: Beltagy et al., arXiv:2004.05150; Jiang et al.,
//               arXiv:2310.06825)
//   segments    q_segments[b, i] = k_segments[b, j]
// A query that sees no key has o = 0, lse = -inf and zero gradients.
//
// With bias_by_distance[h, m] the score of a pair is scale q_i·k_j + bias[a, clamp(j - i - offset[b] + bias_origin, 0,
// m - 1)]. The table needs one entry per distinct distance, whatever t and s are (Raffel et al., arXiv:1910.10683,
// section 2.1; its buckets become such a table by looking up the bucket of each distance). The gradient of an entry is
// the sum of p_ij (g_i·v_j - Δ_i) over the pairs that use it.
//
// With `zigzag` queries and keys lie in zigzag order (describe/ops/zigzag.h); i and j are their positions in the row.
//
// Operands: q[b, t, h, d], k and v[b, s, n, d]; the gradient then takes o, lse and g; then q_segments and k_segments
// with `segments`; then offset with `offsets`; then bias_by_distance with `bias_origin`.
//
// Constraints: C1 operand counts as the flags say. C2 q, k, v have one float type and the same b and d; k and v are
// alike. C3 n divides h. C4 segments i32[b, t] and i32[b, s]. C5 offset i32[b], with causal only. C6 o and g like q,
// lse f32[b, h, t] (f64 for f64). C7 scale > 0. C8 window ≥ 1, with causal only. C9 bias_by_distance f32[h, m] (f64 for
// f64) with 0 <= bias_origin < m. C10 zigzag ≥ 2 with causal, t = s, 2 zigzag divides t; no offset, window or bias. C11
// 1 ≤ value ≤ d. C12 ring with zigzag only.
//
// Work counts the pairs that shape allows. Causal without offsets: Σ_i min(i + 1, s), and with a window at most its
// width per query. With offsets, which are data: t s, or t min(window, s). Pairs that data masks are skipped.
//   forward     a pair 4d + 3 and an exp, a query d + 1 and a log; 4d of a pair are model FLOPs
//   gradient    a pair 10d + 5 and an exp, a query 2d; 8d of a pair are model FLOPs (recomputed scores are not)
//   bias        adds 1 to a pair, and 2 to a pair of the gradient
//   value       values narrower than keys are padded with zeros (DeepSeek-AI, arXiv:2405.04434, section 2.1), which are
//               no model FLOPs: 2d + 2 value of a pair count, and twice that of a pair of the gradient
//
// Sharding: batch and heads pass (the heads of q and of k, v together). Queries pass when attention is not causal and
// has no bias, whose distances need whole rows. In zigzag order a local rewrite shards queries (attention_zigzag.h),
// and with `ring` keys as well.

#include <limits>
#include <vector>

#include "describe/ops/attention_pairs.h"
#include "describe/ops/attention_zigzag.h"
#include "describe/ops/list.h"

namespace systole {
namespace {

using namespace ops;  // attention_pairs.h

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Type> infer(const OpCall& call) {
  check_attention(call, kForward);
  return {call.operand(0), lse_type(call.operand(0))};
}

Gradients gradient(GradientCall& call) {
  if (call.cotangent(1)) fail(error(ErrorKind::unsupported, "no gradient flows through the lse of attention"));
  const AttentionMasks masks = masks_of(call.attrs(), kForward);
  AttentionOptions options{masks.causal, call.attrs().get_double("scale"), {}, {}, {}};
  options.window = masks.window;
  options.zigzag = masks.zigzag;
  options.ring = masks.ring;
  options.value = call.attrs().find("value") == nullptr ? 0 : call.attrs().get_int("value");
  if (masks.q_segments >= 0) options.q_segments = call.operand(masks.q_segments);
  if (masks.k_segments >= 0) options.k_segments = call.operand(masks.k_segments);
  if (masks.offset >= 0) options.offset = call.operand(masks.offset);
  if (masks.bias >= 0) {
    options.bias_by_distance = call.operand(masks.bias);
    options.bias_origin = masks.origin;
  }
  const AttentionGrad d = attention_grad(call.operand(0), call.operand(1), call.operand(2), call.result(0),
                                         call.result(1), *call.cotangent(0), options);
  Gradients gradients(static_cast<std::size_t>(call.num_operands()));
  gradients[0] = d.dq;
  gradients[1] = d.dk;
  gradients[2] = d.dv;
  if (masks.bias >= 0) gradients[static_cast<std::size_t>(masks.bias)] = d.dbias;
  return gradients;
}

Work work(const OpCall& call, std::span<const Type> results) {
  const AttentionSizes z = sizes_of(call.operand(0), call.operand(1));
  const AttentionMasks masks = masks_of(call.attrs, kForward);
  const std::int64_t pairs = pairs_of(masks, z), queries = z.b * z.h * z.t;
  Work work = moves(call.operands, results);
  work.flops = pairs * forward_pair(masks, z.d) + queries * (z.d + 1);
  work.transcendentals = pairs + queries;
  work.model_flops = pairs * 2 * useful_width(call.attrs, z.d);
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const AttentionMasks masks = masks_of(call.attrs, kForward);
  const char s = key_factor(masks);
  return sharding_rule(fmt::format("bthd,b{0}hd,b{0}hd{1}->bthd,bht", s, mask_notation(masks)), "",
                       whole_factors(masks), masks.zigzag > 0 ? "t" : "");
}

struct Pair {
  std::int64_t key;  // index of its element 0
  Scalar score;
};

void reference_query(const AttentionCall& call, const ReferenceCall& raw, std::int64_t b, std::int64_t i,
                     std::int64_t a) {
  const std::int64_t query = call.query(b, i, a), d = call.z.d;
  std::vector<Pair> seen;
  Scalar top(-kInf), sum(0);
  for (std::int64_t j = 0; j < call.keys(i); ++j) {
    if (!call.sees(b, i, j)) continue;
    const std::int64_t key = call.key(b, j, a);
    seen.push_back({key, call.score(b, i, j, a)});
    top = max(top, seen.back().score);
  }
  skip_pairs(call.allowed(i) - static_cast<std::int64_t>(seen.size()), call.flops_forward);
  const Scalar shift = top == Scalar(-kInf) ? Scalar(0) : top;
  std::vector<Scalar> o(static_cast<std::size_t>(d));
  for (const Pair& pair : seen) {
    const Scalar p = exp(pair.score - shift);
    sum += p;
    for (std::int64_t c = 0; c < d; ++c) o[static_cast<std::size_t>(c)] += p * call.v.at(pair.key + c);
  }
  const Scalar divisor = sum == Scalar(0) ? Scalar(1) : sum;
  for (std::int64_t c = 0; c < d; ++c) raw.results[0].set(query + c, o[static_cast<std::size_t>(c)] / divisor);
  raw.results[1].set(call.row(b, i, a), shift + log(sum));
}

void reference(const ReferenceCall& raw) {
  const AttentionCall call(raw, kForward);
  call.for_each_query([&](std::int64_t b, std::int64_t i, std::int64_t a) { reference_query(call, raw, b, i, a); });
}

OpDef make_attention() {
  OpDef op;
  op.name = "attention";
  op.summary = "o = softmax(scale q k^T + mask) v with grouped queries, lse = ln sum exp; arXiv:2205.14135";
  op.signature =
      "(q: float[b, t, h, d], k: float[b, s, n, d], v: like k, q_segments: i32[b, t], k_segments: i32[b, s] with "
      "segments, offset: i32[b] with offsets, bias_by_distance: f32[h, m] with bias_origin) -> (o: like q, lse: f32[b, "
      "h, t])";
  op.attrs = attention_attrs();
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.local_rewrite = [](const OpCall& local, int, std::string_view axis, std::int64_t parts) {
    return zigzag_attention(local, axis, parts);
  };
  op.reference = reference;
  op.precision = PrecisionRule::compute;
  return op;
}

}  // namespace

std::vector<OpDef> ops::attention_ops() { return {make_attention(), attention_grad_op()}; }

Attention attention(Value q, Value k, Value v, const AttentionOptions& options) {
  const std::vector<Value> results = apply_attention("attention", {q, k, v}, options);
  return {results[0], results[1]};
}

}  // namespace systole
