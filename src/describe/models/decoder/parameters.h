#pragma once
// The parameters of a decoder, and the table of its projections from which both they and the block are built.

#include <span>

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
bool has_projection(const DecoderConfig& config, const Projection& projection);
bool has_adapter(const DecoderConfig& config, const Projection& projection);
bool has_norm_bias(const DecoderConfig& config);

// REQUIRES: config is checked(). With adapters all others are frozen. Names, where the config has them:
//   embed.tokens[vocab, embed]  embed.positions[position, embed]  norm.scale norm.bias [embed]  head[vocab, embed]
//   with experts, in the place of mlp.gate, mlp.up and mlp.down:
//   blocks.{layer}.moe.router[layer, embed, router]  blocks.{layer}.moe.{gate,up}[layer, expert, embed, mlp]
//   blocks.{layer}.moe.down[layer, expert, mlp, embed]  blocks.{layer}.moe.shared.{gate,up,down}, as wide as the shared
//   experts together
//   with latent attention, in the place of its projections: blocks.{layer}.attn.q_down[layer, embed, q_rank]
//   …attn.q_norm.scale[layer, q_rank]  …attn.q[layer, q_rank or embed, heads, nope + rope]
//   …attn.kv_down[layer, embed, kv_rank]  …attn.kv_norm.scale[layer, kv_rank]  …attn.k_rope[layer, embed, rope]
//   …attn.k[layer, kv_rank, heads, nope]  …attn.v[layer, kv_rank, heads, value]  …attn.o[layer, heads, value, embed]
//   blocks.{layer}.attn.{q_norm,k_norm}.scale[layer, head]
//   Layers behind those without experts are blocks.{layer+3}.…
//   blocks.{layer}.{norm1,norm2}.{scale,bias}  blocks.{layer}.<projection>[layer, in, out] and its bias[layer, out]
std::vector<Parameter> decoder_parameters(const DecoderConfig& config);

}  // namespace systole
