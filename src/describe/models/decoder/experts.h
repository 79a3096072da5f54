#pragma once
// The feed-forward part of a block as a mixture of experts, inside the body of a repeat over layers
// (docs/concepts/experts.md):
//
//   p = softmax(x router)          the k experts with the largest p get the token, of equal ones the lower first
//   y = Σ over them of gate × down(activate(gate_e x) ∘ up_e x)   + the same of the shared experts, which all see
//
// gate is `scale` p, or with `normalized` that divided by the sum of p over the k. With `scores: sigmoid` p is that of
// each expert by itself, and for the balance divided by the sum over all. Shazeer et al., arXiv:1701.06538; Jiang et
// al., arXiv:2401.04088 (Mixtral); Dai et al., arXiv:2401.06066 (shared experts); DeepSeek-AI, arXiv:2412.19437,
// equations 12 to 20 (sigmoid, without the bias that only chooses).
//
// Tokens are routed within groups: a sequence, or `group` tokens of it. An expert has in each group as many places as
// capacity_factor × its even share, rounded up; they are filled in the order of tokens, and who finds none gets nothing
// of that expert. `dropless`: a place for every token. Padding (segment 0) takes no place.
//
// Names for recompute policies and probes: moe.logits, moe.in (what experts are given), mlp.gate, mlp.hidden, mlp.act,
// moe.out (what they give), moe.dropped (choices without a place), moe.choices (all), mlp.out.

#include <optional>

#include "describe/models/decoder/config.h"
#include "describe/models/stack.h"

namespace systole {

// Where tokens come from.
struct ExpertTokens {
  std::optional<Value> segments;  // i32[batch, seq], 0 padding; none: all are tokens
  bool serving = false;           // nothing is dropped
};

struct ExpertResult {
  Value y;  // like x
  // f32[]: experts × Σ over experts of (share of choices it got) × (mean of its p), 1 when all are used alike (Fedus et
  // al., arXiv:2101.03961, equation 4); counts and means over all tokens of all groups.
  Value balance;
  Value choices, dropped;  // f32[], of all groups: how many experts were chosen, how many of these had no place left
};

// Places of an expert in a group of `tokens`.
std::int64_t expert_capacity(const ExpertsConfig& config, std::int64_t tokens, bool serving);

// x[batch, seq, embed]. Errors: Failure(invalid) when the group does not divide seq.
ExpertResult mix_experts(const DecoderConfig& config, const Stack& stack, Value x, const ExpertTokens& tokens);

}  // namespace systole
