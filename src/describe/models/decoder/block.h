#pragma once
// One block of a decoder (pre-norm), inside the body of a repeat over layers:
//
//   x += drop(o(attend(q, k, v)))   with q, k, v = projections of norm1(x)
//   x += drop(down(activate(up(norm2(x)))))              gated: down(activate(gate(norm2(x))) ∘ up(norm2(x)))
//
// parallel:  x += drop(o(attend(q, k, v))) + drop(down(activate(up(norm1(x)))))
//
// With experts the feed-forward part is theirs (experts.h).
//
// Latent attention (DeepSeek-AI, arXiv:2405.04434, section 2.1): of a token those after it see c and r alone,
//
//   c = norm(W n)   k = [W_k c, r]   v = W_v c        r = place(W_r n), one for all heads
//   q = [W_q l, place(W_p l)]        with l = norm(W_l n), or n
//
// Its values are narrower than its keys. Zeros fill them up, which attention does and nobody counts as the model's
// work.
//
// Values that recompute policies and probes may name: block.in, attn.norm, attn.q, attn.k, attn.v, attn.o (what
// attention gives), attn.out (after its projection), mlp.norm (not parallel), mlp.gate (gated: before the activation),
// mlp.hidden (of up), mlp.act (what goes down), mlp.out.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "describe/models/decoder/experts.h"
#include "describe/models/decoder/parameters.h"
#include "describe/models/stack.h"

namespace systole {

// Over the last dim, by the config's norm; `bias` only where has_norm_bias.
Value decoder_norm(const DecoderConfig& config, Value x, Value scale, const std::optional<Value>& bias);

struct BlockResult {
  Value x;
  std::optional<Value> balance, choices, dropped;  // f32[], with experts, as ExpertResult says
};

class DecoderBlock {
 public:
  // Those of the body of a repeat, one after the other. REQUIRES as Stack::of_period; `parameters` are of the decoder
  // that the group is of, and the group outlives them.
  static std::vector<DecoderBlock> of(Layers& layers, const LayerGroup& group, const Parameters& outer,
                                      std::span<const Parameter> parameters, const std::optional<DropoutKey>& key);

  // place(q or k) gives heads their positions, and of(q[b, t, h, d], k[b, t, n, d], v) → [b, t, h, d] takes them with
  // it.
  struct Attend {
    std::function<Value(Value)> place;
    std::function<Value(Value q, Value k, Value v)> of;
  };
  // x f32[batch, seq, embed]. Sites of dropout: 0 is the embedding's, 2 layer + 1 and 2 layer + 2 the block's.
  BlockResult operator()(Value x, const Attend& attend, const ExpertTokens& tokens) const;

 private:
  DecoderBlock(const DecoderConfig& config, Stack stack) : config_(config), stack_(std::move(stack)) {}
  Value attention(Value normed, const Attend& attend) const;
  Value latent_attention(Value normed, const Attend& attend) const;
  Value normed_heads(Value heads, const std::string& name) const;
  Value norm(Value x, const std::string& name) const;
  Value project(Value x, const std::string& name) const;
  BlockResult feed_forward(Value normed, const ExpertTokens& tokens) const;

  const DecoderConfig& config_;
  const Stack stack_;
};

}  // namespace systole
