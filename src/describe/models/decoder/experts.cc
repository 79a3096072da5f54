// Legend: g groups, t tokens per group, e embed, x expert, c capacity, m mlp, k choices per token.

#include "describe/models/decoder/experts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "describe/models/activation.h"
#include "describe/ops/routing.h"

namespace systole {
namespace {

// x[batch, seq, …] as [batch × seq / t, t, …].
Value in_groups(Value x, std::int64_t t) {
  Type type = x.type();
  if (type.size(1) == t) return x;
  type.shape[0] *= type.size(1) / t;
  type.shape[1] = t;
  return reshape(x, type);
}

// down(activate(gate x) ∘ up x), where `project` applies the matrices.
template <typename Project>
Value feed_forward(const DecoderSpec& config, const Project& project) {
  const auto hidden = [&] { return project.up("up").named("mlp.hidden"); };
  Value act = activate(config.activation, config.gated ? project.up("gate").named("mlp.gate") : hidden());
  if (config.gated) act = mul(act, hidden());
  return project.down(act.named("mlp.act"));
}

struct Choice {
  Value gates;   // [g, t, k]
  Value chosen;  // i32[g, t, k]; -1 for padding
  Value p;       // [g, t, x], zero for padding
};

// x divided by its sum over the last dim.
Value shares(Value x) {
  const int last[] = {2}, rows[] = {0, 1};
  return div(x, broadcast(reduce_sum(x, last), x.type(), rows));
}

Choice choose(const DecoderSpec& config, const Stack& stack, Value x, const std::optional<Value>& segments) {
  const Value logits = contract(x, stack["moe.router"], "gte,ex->gtx").named("moe.logits");
  const bool apart = config.moe.scores == ExpertsSpec::Scores::sigmoid;
  Value p = apart ? sigmoid(logits) : softmax(logits);
  const TopK top = top_k(p, config.moe.top_k);
  Value gates = config.moe.normalize ? shares(top.values) : top.values;
  if (config.moe.scale != 1) gates = scale(gates, config.moe.scale);
  if (apart) p = shares(p);
  if (!segments) return {gates, top.indices, p};
  const Value real = compare(*segments, full_like(*segments, 0), "gt");
  const auto where_real = [&](Value value, double otherwise) {
    const int rows[] = {0, 1};
    const Value other = full_like(value, otherwise);
    return select(broadcast(real, value.type().with(DType::boolean), rows), value, other);
  };
  return {gates, where_real(top.indices, -1), where_real(p, 0)};
}

Value choices_of(Value wanted) { return sum_all(cast(wanted, DType::f32)); }

Value balance_of(std::int64_t experts, std::int64_t k, Value wanted, Value p) {
  const int groups[] = {0}, tokens[] = {0, 1};
  const Value counts = cast(reduce_sum(wanted, groups), DType::f32);  // [x]
  const Value all = sum_all(counts);                                  // k per token
  const Value choices = max(all, full_like(all, 1));
  const Value share = div(counts, broadcast_scalar(choices, counts.type()));
  const Value mean = div(reduce_sum(p, tokens), broadcast_scalar(choices, counts.type()));
  return scale(sum_all(mul(share, mean)), static_cast<double>(experts * k));
}

Value dropped_of(Value wanted, std::int64_t capacity) {
  const Value counts = cast(wanted, DType::f32);
  return sum_all(relu(sub(counts, full_like(counts, static_cast<double>(capacity)))));
}

}  // namespace

std::int64_t expert_capacity(const ExpertsSpec& config, std::int64_t tokens, bool serving) {
  if (config.dropless || serving) return tokens;  // a token chooses an expert at most once
  const double even = static_cast<double>(tokens * config.top_k) / static_cast<double>(config.experts);
  const auto places = static_cast<std::int64_t>(std::ceil(config.capacity_factor * even));
  return std::clamp<std::int64_t>(places, 1, tokens);
}

ExpertResult mix_experts(const DecoderSpec& config, const Stack& stack, Value x_bse, const ExpertTokens& tokens) {
  const ExpertsSpec& experts = config.moe;
  const std::int64_t sequence_length = x_bse.type().size(1);
  const std::int64_t t = experts.group == 0 || tokens.serving ? sequence_length
                                                              : std::min(experts.group, sequence_length),
                     k = experts.top_k;
  if (sequence_length % t != 0) {
    fail(key_error(ErrorKind::invalid, "model.moe.group", "{} tokens do not divide rows of {}", t, sequence_length)
             .hinted("a divisor, or leave it out: a group is a row"));
  }
  const Value x = in_groups(x_bse, t);
  std::optional<Value> segments;
  if (tokens.segments) segments = in_groups(*tokens.segments, t);
  const Choice choice = choose(config, stack, x, segments);
  // A row that is shorter than the model's context drops the tokens that it drops padded to it, no more.
  const std::int64_t whole = experts.group == 0 ? config.context : std::min(experts.group, config.context);
  const std::int64_t capacity = std::min(t, expert_capacity(experts, std::max(t, whole), tokens.serving)),
                     places = experts.experts * capacity;
  const Routed routed = route(choice.chosen, experts.experts, capacity);
  const Value choices = choices_of(routed.wanted).named("moe.choices");
  const Value dropped = dropped_of(routed.wanted, capacity).named("moe.dropped");

  const Value in = gather_rows(x, routed.token).named("moe.in");
  const Ints filled{std::min(t * k, places), places};
  const struct {
    const Stack& stack;
    Value in;
    const Ints& filled;
    Value up(const std::string& name) const {
      return contract_filled(in, stack["moe." + name], "gxce,xem->gxcm", filled);
    }
    Value down(Value act) const { return contract_filled(act, stack["moe.down"], "gxcm,xme->gxce", filled); }
  } routed_part{stack, in, filled};
  const Value out = feed_forward(config, routed_part).named("moe.out");

  const Type columns(x.dtype(), {x.type().size(0), t * k, 1}, {"batch", "", ""});
  const Value gates = gather_rows(reshape(choice.gates, columns),
                                  routed.choice);  // [g, x, c, 1]
  Type per_place = gates.type();
  per_place.remove_dim(3);
  const int leading[] = {0, 1, 2};
  const Value weighted = mul(out, broadcast(reshape(gates, per_place), out.type(), leading));
  Value y = scatter_rows(weighted, routed.token, 1, t, DType::f32, "seq");
  y = reshape(y, x_bse.type());
  if (experts.shared_experts > 0) {
    const struct {
      const Stack& stack;
      Value in;
      Value up(const std::string& name) const { return stack.project(in, "moe.shared." + name, "e", "m"); }
      Value down(Value act) const { return stack.project(act, "moe.shared.down", "m", "e"); }
    } shared_part{stack, x_bse};
    y = add(y, feed_forward(config, shared_part));
  }
  return {y.named("mlp.out"), balance_of(experts.experts, k, routed.wanted, choice.p), choices, dropped};
}

}  // namespace systole
