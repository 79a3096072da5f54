// The gradient of attention. Its formulas, operands, constraints and work are in attention.cc.

#include <limits>
#include <vector>

#include "describe/ops/attention_pairs.h"
#include "describe/ops/attention_zigzag.h"
#include "describe/ops/list.h"

namespace systole {
namespace {

using namespace ops;  // attention_pairs.h

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Type> infer_grad(const OpCall& call) {
  check_attention(call, kBackward);
  const Type &q = call.operand(0), &o = call.operand(3), &lse = call.operand(4), &g = call.operand(5);
  if (!(o == q) || !(g == q) || !(lse == lse_type(q))) {
    constraint("attention_c6", "o {}, lse {}, g {} of q {}", to_string(o), to_string(lse), to_string(g), to_string(q));
  }
  std::vector<Type> results{q, call.operand(1), call.operand(2)};
  if (const AttentionMasks masks = masks_of(call.attrs, kBackward); masks.bias >= 0)
    results.push_back(call.operand(masks.bias));
  return results;
}

Work work_grad(const OpCall& call, std::span<const Type> results) {
  const AttentionSizes z = sizes_of(call.operand(0), call.operand(1));
  const AttentionMasks masks = masks_of(call.attrs, kBackward);
  const std::int64_t pairs = pairs_of(masks, z), queries = z.b * z.h * z.t;
  Work work = moves(call.operands, results);
  work.flops = pairs * backward_pair(masks, z.d) + queries * 2 * z.d;
  work.transcendentals = pairs;
  work.model_flops = pairs * 4 * useful_width(call.attrs, z.d);
  return work;
}

// Sharded queries leave dk and dv partial sums; a sharded batch leaves the gradient of the bias partial sums.
ShardingRule sharding_grad(const OpCall& call) {
  const AttentionMasks masks = masks_of(call.attrs, kBackward);
  return sharding_rule(fmt::format("bthd,b{0}hd,b{0}hd,bthd,bht,bthd{1}->bthd,b{0}hd,b{0}hd{2}", key_factor(masks),
                                   mask_notation(masks), masks.bias >= 0 ? ",hm" : ""),
                       masks.bias >= 0 ? "b"
                       : masks.causal  ? ""
                                       : "t",
                       whole_factors(masks), masks.zigzag > 0 ? "t" : "");
}

struct Sums {
  std::vector<Scalar> dq, dk, dv, dbias;
};

void reference_grad_query(const AttentionCall& call, const ReferenceCall& raw, Sums& sums, std::int64_t b,
                          std::int64_t i, std::int64_t a) {
  const TensorView &o = raw.operands[3], &g = raw.operands[5];
  const std::int64_t query = call.query(b, i, a), d = call.z.d;
  const Scalar lse = raw.operands[4].at(call.row(b, i, a)), delta = call.dot(o, query, g, query);
  std::int64_t seen = 0;
  for (std::int64_t j = 0; j < call.keys(i); ++j) {
    if (!call.sees(b, i, j)) continue;
    ++seen;
    const std::int64_t key = call.key(b, j, a);
    const Scalar e = exp(call.score(b, i, j, a) - lse);
    const Scalar p = lse == Scalar(-kInf) ? Scalar(0) : e;
    const Scalar of_score = p * (call.dot(g, query, call.v, key) - delta), ds = of_score * call.scale;
    if (call.has_bias()) sums.dbias[static_cast<std::size_t>(call.bias(b, i, j, a))] += of_score;
    for (std::int64_t c = 0; c < d; ++c) {
      sums.dv[static_cast<std::size_t>(key + c)] += p * g.at(query + c);
      sums.dq[static_cast<std::size_t>(query + c)] += ds * call.k.at(key + c);
      sums.dk[static_cast<std::size_t>(key + c)] += ds * call.q.at(query + c);
    }
  }
  skip_pairs(call.allowed(i) - seen, call.flops_backward);
}

void reference_grad(const ReferenceCall& raw) {
  const AttentionCall call(raw, kBackward);
  const auto queries = static_cast<std::size_t>(call.q.type.num_elements());
  const auto keys = static_cast<std::size_t>(call.k.type.num_elements());
  Sums sums{std::vector<Scalar>(queries), std::vector<Scalar>(keys), std::vector<Scalar>(keys),
            std::vector<Scalar>(static_cast<std::size_t>(call.bias_size()))};
  call.for_each_query(
      [&](std::int64_t b, std::int64_t i, std::int64_t a) { reference_grad_query(call, raw, sums, b, i, a); });
  for (std::size_t i = 0; i < queries; ++i) raw.results[0].set(static_cast<std::int64_t>(i), sums.dq[i]);
  for (std::size_t i = 0; i < keys; ++i) {
    raw.results[1].set(static_cast<std::int64_t>(i), sums.dk[i]);
    raw.results[2].set(static_cast<std::int64_t>(i), sums.dv[i]);
  }
  for (std::size_t i = 0; i < sums.dbias.size(); ++i) raw.results[3].set(static_cast<std::int64_t>(i), sums.dbias[i]);
}

}  // namespace

OpDef ops::attention_grad_op() {
  OpDef op;
  op.name = "attention_grad";
  op.summary = "the gradient of attention, the scores computed again from q, k and lse; arXiv:2205.14135";
  op.signature =
      "(q: float[b, t, h, d], k: float[b, s, n, d], v: like k, o: like q, lse: f32[b, h, t], g: like q, q_segments: "
      "i32[b, t], k_segments: i32[b, s] with segments, offset: i32[b] with offsets, bias_by_distance: f32[h, m] with "
      "bias_origin) -> (dq: like q, dk: like k, dv: like k, dbias: like bias_by_distance)";
  op.attrs = attention_attrs();
  op.infer = infer_grad;
  op.work = work_grad;
  op.sharding = sharding_grad;
  op.local_rewrite = [](const OpCall& local, int, std::string_view axis, std::int64_t parts) {
    return zigzag_attention_grad(local, axis, parts);
  };
  op.reference = reference_grad;
  op.precision = PrecisionRule::f32;
  return op;
}

AttentionGrad attention_grad(Value q, Value k, Value v, Value o, Value lse, Value g, const AttentionOptions& options) {
  const std::vector<Value> results = apply_attention("attention_grad", {q, k, v, o, lse, g}, options);
  return {results[0], results[1], results[2], results.size() > 3 ? std::optional(results[3]) : std::nullopt};
}

}  // namespace systole
