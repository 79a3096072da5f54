#pragma once
// A t5's spec made explicit: sizes without zeros, and its parameters.

#include "describe/ir/ir.h"
#include "describe/models/t5/relative_position.h"
#include "describe/spec/families/t5.h"

namespace systole {

inline RelativePositions encoder_positions(const T5Spec& c) { return {c.relative_buckets, c.relative_furthest, true}; }
inline RelativePositions decoder_positions(const T5Spec& c) { return {c.relative_buckets, c.relative_furthest, false}; }

// The config with its zeros replaced by their defaults. Errors: Failure(invalid) that names the key and valid values.
T5Spec checked(T5Spec config);

// REQUIRES: config is checked(). Names, as far as the config has them:
//   embed.tokens[vocab, embed]  head[vocab, embed]  {encoder,decoder}.norm.scale[embed]
//   {encoder,decoder}.relative_bias[bucket, heads], shared by all layers of a stack
//   encoder.blocks.{layer}.norm1.scale attn.{q,k,v}[embed, heads, head] attn.o[heads, head, embed] norm2.scale mlp.*
//   decoder.blocks.{layer}.norm1.scale attn.* norm2.scale cross.{q,k,v,o} norm3.scale mlp.*
//   mlp.gate mlp.up [embed, mlp]  mlp.down[mlp, embed]
std::vector<Parameter> t5_parameters(const T5Spec& config);

}  // namespace systole
