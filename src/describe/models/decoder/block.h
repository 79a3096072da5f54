#pragma once
// One block of a decoder (pre-norm), inside the body of a repeat over layers:
//
//   x += drop(o(attend(q, k, v)))   with q, k, v = projections of norm1(x)
//   x += drop(down(activate(up(norm2(x)))))              gated: down(activate(gate(norm2(x))) ∘ up(norm2(x)))
//
// parallel:  x += drop(o(attend(q, k, v))) + drop(down(activate(up(norm1(x)))))
//
// With experts, they replace the feed-forward part (experts.h).
//
// Latent attention (DeepSeek-AI, arXiv:2405.04434, section 2.1): later tokens see only c and r of a token,
//
//   c = norm(W n)   k = [W_k c, r]   v = W_v c        r = place(W_r n), shared by all heads
//   q = [W_q l, place(W_p l)]        with l = norm(W_l n), or l = n without q_rank
//
// Its values are narrower than its keys. Attention pads them with zeros, which do not count as model FLOPs.
//
// Values that recompute policies and probes may name: block.in, attn.norm, attn.q, attn.k, attn.v, attn.o (attention's
// output), attn.out (after its projection), mlp.norm (not parallel), mlp.gate (gated: before the activation),
// mlp.hidden (output of up), mlp.act (input of down), mlp.out.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "describe/models/decoder/experts.h"
#include "describe/models/decoder/parameters.h"
#include "describe/models/stack.h"

namespace systole {

// Norm over the last dim, of the config's kind; `bias` only if has_norm_bias.
Value decoder_norm(const DecoderSpec& config, Value x, Value scale, const std::optional<Value>& bias);

struct BlockResult {
  Value x;
  std::optional<Value> balance, choices, dropped;  // f32[], with experts; see ExpertResult
};

class DecoderBlock {
 public:
  // The blocks of a repeat's body, in order. REQUIRES: as Stack::of_period; `parameters` are those of the decoder that
  // the group belongs to, and the group outlives the blocks.
  static std::vector<DecoderBlock> of(Layers& layers, const LayerGroup& group, const Parameters& outer,
                                      std::span<const Parameter> parameters, const std::optional<DropoutKey>& key);

  // place(q or k) applies positions to heads; of(q[b, t, h, d], k[b, t, n, d], v) → [b, t, h, d] computes attention
  // with them.
  struct Attend {
    std::function<Value(Value)> place;
    std::function<Value(Value q, Value k, Value v)> of;
  };
  // What becomes of the result y of a projection of x.
  using Adapt = std::function<Value(const std::string& projection, Value x, Value y)>;
  void adapt_by(Adapt adapt) { adapt_ = std::move(adapt); }

  // x f32[batch, seq, embed]. Dropout sites: 0 is the embedding's, 2 layer + 1 and 2 layer + 2 the block's.
  BlockResult operator()(Value x, const Attend& attend, const ExpertTokens& tokens) const;

 private:
  DecoderBlock(const DecoderSpec& config, Stack stack) : config_(config), stack_(std::move(stack)) {}
  Value attention(Value normed, const Attend& attend) const;
  Value latent_attention(Value normed, const Attend& attend) const;
  Value normed_heads(Value heads, const std::string& name) const;
  Value norm(Value x, const std::string& name) const;
  Value project(Value x, const std::string& name) const;
  BlockResult feed_forward(Value normed, const ExpertTokens& tokens) const;

  const DecoderSpec& config_;
  const Stack stack_;
  Adapt adapt_;  // empty: nothing
};

}  // namespace systole
