#pragma once
// For tests: the smallest t5 that has every part. Distances in its rows go beyond `furthest` on both sides.

#include "describe/models/t5/t5.h"

namespace systole {

inline T5Config tiny_t5() {
  T5Config config;
  config.layers = 2;
  config.decoder_layers = 3;
  config.width = 12;
  config.heads = 3;
  config.head = 5;
  config.mlp = 20;
  config.vocabulary = 11;
  config.context = 12;
  config.target_context = 10;
  config.buckets = 8;
  config.furthest = 6;
  return config;
}

// As v1.1 has it.
inline T5Config tiny_gated_t5() {
  T5Config config = tiny_t5();
  config.gated = true;
  config.tied = false;
  config.activation = ModelSpec::Activation::gelu_tanh;
  return config;
}

}  // namespace systole
