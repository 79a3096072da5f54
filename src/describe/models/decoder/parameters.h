#pragma once
// The parameters of a decoder, and the table of projections from which parameters and blocks are built.

#include <span>

#include "describe/ir/ir.h"
#include "describe/models/decoder/config.h"

namespace systole {

// y[b, s, out] = x[b, s, in] W[in, out] + bias[out], dims as letters: e embed, h heads, n kv_heads, d head, m mlp.
struct Projection {
  const char* name;  // "attn.q"; its bias is "attn.q_bias", its adapters "attn.q.lora_a" and "attn.q.lora_b"
  const char* in;
  const char* out;
  bool residual;  // its result is added to the residual stream
};
std::span<const Projection> decoder_projections();
bool has_projection(const DecoderSpec& config, const Projection& projection);
bool has_adapter(const DecoderSpec& config, const Projection& projection);
bool has_norm_bias(const DecoderSpec& config);

// REQUIRES: config is checked(). With adapters all other parameters are frozen. Names, as far as the config has them:
//   embed.tokens[vocab, embed]  embed.positions[position, embed]  norm.scale norm.bias [embed]  head[vocab, embed]
//   with experts, instead of mlp.gate, mlp.up and mlp.down:
//   blocks.{layer}.moe.router[layer, embed, router]  blocks.{layer}.moe.{gate,up}[layer, expert, embed, mlp]
//   blocks.{layer}.moe.down[layer, expert, mlp, embed]  blocks.{layer}.moe.shared.{gate,up,down}, as wide as all shared
//   experts together
//   with latent attention, instead of its projections: blocks.{layer}.attn.q_down[layer, embed, q_rank]
//   …attn.q_norm.scale[layer, q_rank]  …attn.q[layer, q_rank or embed, heads, nope + rope]
//   …attn.kv_down[layer, embed, kv_rank]  …attn.kv_norm.scale[layer, kv_rank]  …attn.k_rope[layer, embed, rope]
//   …attn.k[layer, kv_rank, heads, nope]  …attn.v[layer, kv_rank, heads, value]  …attn.o[layer, heads, value, embed]
//   blocks.{layer}.attn.{q_norm,k_norm}.scale[layer, head]
//   Layers after those without experts are blocks.{layer+3}.…
//   blocks.{layer}.{norm1,norm2}.{scale,bias}  blocks.{layer}.<projection>[layer, in, out] and its bias[layer, out]
std::vector<Parameter> decoder_parameters(const DecoderSpec& config);

}  // namespace systole
