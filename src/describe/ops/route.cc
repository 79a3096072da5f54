// route: assigns tokens to slots in the buffers of the experts. chosen i32[g, t, k] names the k experts that each of
// the t tokens of a group wants. An expert has `capacity` slots in each group. They are filled in the order of tokens
// and, within a token, of its choices; a choice without a slot is dropped. So a token's slots depend only on the tokens
// before it, not on later ones, other groups or devices. (Lepikhin et al., "GShard", arXiv:2006.16668, section 2.2,
// serves all first choices before all second ones; in a causal model the future would then displace the past.)
//
//   choice i32[g, experts, capacity]  k · token + the choice in the slot; -1: empty
//   token  i32[g, experts, capacity]  the token in the slot; -1: empty
//   wanted i32[g, experts]            how many wanted the expert, dropped ones included
//
// The expert dim of `wanted` is named "router": it describes the router's view and stays whole on each device.
//
// An expert outside [0, experts) is ignored: padding chooses -1.
//
// Constraints: C1 one operand i32[g, t, k]. C2 experts and capacity at least 1; (experts + 1) · t · k fits in 31 bits.
// Not differentiable. Work: moves only. Sharding: groups pass, all else is replicated.

#include <limits>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/routing.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 1 || call.operand(0).ndim() != 3 || call.operand(0).dtype != DType::i32)
    constraint("route_c1", "route takes chosen i32[g, t, k]");
  const Type& chosen = call.operand(0);
  const std::int64_t experts = call.attrs.get_int("experts"), capacity = call.attrs.get_int("capacity");
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() / std::max<std::int64_t>(1, experts + 1);
  if (experts < 1 || capacity < 1 || chosen.size(1) * chosen.size(2) > most)
    constraint("route_c2", "{} experts of {} places for {}", experts, capacity, to_string(chosen));
  const Type places(DType::i32, {chosen.size(0), experts, capacity}, {chosen.name(0), "expert", "capacity"});
  return {places, places, Type(DType::i32, {chosen.size(0), experts}, {chosen.name(0), "router"})};
}

void reference(const ReferenceCall& call) {
  const TensorView &chosen = call.operands[0], &choice = call.results[0], &token = call.results[1],
                   &wanted = call.results[2];
  const std::int64_t groups = chosen.type.size(0), k = chosen.type.size(2), n = chosen.type.size(1) * k;
  const std::int64_t experts = choice.type.size(1), capacity = choice.type.size(2);
  for (std::int64_t i = 0; i < choice.type.num_elements(); ++i) {
    choice.set(i, Scalar(-1));
    token.set(i, Scalar(-1));
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    std::vector<std::int64_t> count(static_cast<std::size_t>(experts));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t expert = chosen.integer(g * n + i);
      if (expert < 0 || expert >= experts) continue;
      const std::int64_t place = count[static_cast<std::size_t>(expert)]++;
      if (place >= capacity) continue;
      choice.set((g * experts + expert) * capacity + place, Scalar(static_cast<double>(i)));
      token.set((g * experts + expert) * capacity + place, Scalar(static_cast<double>(i / k)));
    }
    for (std::int64_t e = 0; e < experts; ++e)
      wanted.set(g * experts + e, Scalar(static_cast<double>(count[static_cast<std::size_t>(e)])));
  }
}

}  // namespace

OpDef ops::route_op() {
  OpDef op;
  op.name = "route";
  op.summary = "assigns each expert's slots to tokens, in the order of tokens; those beyond its capacity are dropped";
  op.signature =
      "(chosen: i32[g, t, k]) -> (choice: i32[g, experts, capacity], token: i32[g, experts, capacity], "
      "wanted: i32[g, experts])";
  op.attrs = {{"experts", "int", "how many"}, {"capacity", "int", "places of an expert in a group"}};
  op.infer = infer;
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.sharding = [](const OpCall&) { return sharding_rule("gtk->gec,gec,ge", "", "tkec"); };
  op.reference = reference;
  return op;
}

Routed route(Value chosen, std::int64_t experts, std::int64_t capacity) {
  const std::vector<Value> made =
      chosen.graph->apply("route", std::span(&chosen, 1), {{"experts", experts}, {"capacity", capacity}});
  return {made[0], made[1], made[2]};
}

}  // namespace systole
