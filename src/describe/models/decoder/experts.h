#pragma once
// A mixture of experts as the feed-forward part of a block, inside the body of a repeat over layers
// (docs/concepts/experts.md):
//
//   p = softmax(x router)          a token goes to the k experts with the largest p; ties go to the lower index
//   y = Σ over them of gate × down(activate(gate_e x) ∘ up_e x)   + the same over the shared experts, without gates
//
// gate = `scale` × p; with `normalize` it is divided by the sum of p over the k. With `scores: sigmoid`, p is the
// sigmoid of each logit; for the balance it is then divided by the sum over all experts. Shazeer et al.,
// arXiv:1701.06538; Jiang et al., arXiv:2401.04088 (Mixtral); Dai et al., arXiv:2401.06066 (shared experts);
// DeepSeek-AI, arXiv:2412.19437, equations 12 to 20 (sigmoid, without the bias that affects only the choice).
//
// Tokens are routed within groups: a sequence, or `group` tokens of it. The capacity of an expert per group is
// capacity_factor × its even share, rounded up. Tokens fill it in their order; a token beyond it gets nothing from that
// expert. `dropless`: capacity for every token. Padding (segment 0) takes no capacity. Where rows are shorter than the
// model's context, the share is that of a row of the context, as if they were padded to it.
//
// Names for recompute policies and probes: moe.logits, moe.in (input of the experts), mlp.gate, mlp.hidden, mlp.act,
// moe.out (their output), moe.dropped (dropped choices), moe.choices (all choices), mlp.out.

#include <optional>

#include "describe/models/decoder/config.h"
#include "describe/models/stack.h"

namespace systole {

// Properties of the tokens to be routed.
struct ExpertTokens {
  std::optional<Value> segments;  // i32[batch, seq], 0: padding; none: no padding
  bool serving = false;           // inference: no token is dropped
};

struct ExpertResult {
  Value y;  // same shape as x
  // Balancing loss, f32[]: experts × Σ over experts of (its fraction of the choices) × (mean of its p), 1 for even use
  // (Fedus et al., arXiv:2101.03961, equation 4). Counts and means are over all tokens of all groups.
  Value balance;
  Value choices, dropped;  // f32[], over all groups: number of choices (token, expert), and of those beyond capacity
};

// Capacity of an expert for a group of `tokens`.
std::int64_t expert_capacity(const ExpertsSpec& config, std::int64_t tokens, bool serving);

// x[batch, seq, embed]. Errors: Failure(invalid) when the group does not divide the sequence length.
ExpertResult mix_experts(const DecoderSpec& config, const Stack& stack, Value x, const ExpertTokens& tokens);

}  // namespace systole
