#pragma once
// The sizes and choices of a t5 (Raffel et al., arXiv:1910.10683): v1.0 by default; v1.1 (Shazeer, arXiv:2002.05202)
// has gated feed-forwards and a head of its own.

#include "describe/graph/ir.h"
#include "describe/models/t5/relative_position.h"
#include "describe/spec/workload.h"

namespace systole {

struct T5Config {
  std::int64_t layers = 6, decoder_layers = 0;  // decoder's 0: as many
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::int64_t head = 0;  // width of one; 0: width / heads
  std::int64_t mlp = 0;   // 0: 4 width
  std::int64_t vocabulary = 32128;
  std::int64_t context = 512, target_context = 0;  // rows of the encoder, of the decoder; its 0: as long
  std::int64_t buckets = 32, furthest = 128;       // of relative positions
  ModelSpec::Activation activation = ModelSpec::Activation::relu;
  bool gated = false;  // down(activate(gate(x)) up(x)) in place of down(activate(up(x)))
  bool tied = true;    // the head is the token embedding, and what it reads is scaled by width^-0.5
  double dropout = 0;  // of the embeddings and of what attention and mlp add, when training
  double eps = 1e-6;   // of the norms
  bool unrolled = false;

  RelativePositions encoder_positions() const { return {buckets, furthest, true}; }
  RelativePositions decoder_positions() const { return {buckets, furthest, false}; }
};

T5Config t5_config(const ModelSpec& spec);

// The same with the zeros replaced by what they stand for.
// Errors: Failure(invalid) that names the key and the values that would do.
T5Config checked(T5Config config);

// REQUIRES: config is checked(). Names, where the config has them:
//   embed.tokens[vocab, embed]  head[vocab, embed]  {encoder,decoder}.norm.scale[embed]
//   {encoder,decoder}.relative_bias[bucket, heads]: one for all layers of a stack
//   encoder.blocks.{layer}.norm1.scale attn.{q,k,v}[embed, heads, head] attn.o[heads, head, embed] norm2.scale mlp.*
//   decoder.blocks.{layer}.norm1.scale attn.* norm2.scale cross.{q,k,v,o} norm3.scale mlp.*
//   mlp.gate mlp.up [embed, mlp]  mlp.down[mlp, embed]
std::vector<Parameter> t5_parameters(const T5Config& config);

}  // namespace systole
