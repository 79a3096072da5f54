#pragma once
// For tests: the smallest t5 that has every part. Distances in its rows exceed `furthest` on both sides.

#include "describe/models/t5/t5.h"

namespace systole {

inline T5Spec tiny_t5() {
  T5Spec config;
  config.layers = 2;
  config.decoder_layers = 3;
  config.width = 12;
  config.heads = 3;
  config.head = 5;
  config.mlp = 20;
  config.vocabulary = 11;
  config.context = 12;
  config.target_context = 10;
  config.relative_buckets = 8;
  config.relative_furthest = 6;
  return config;
}

// With the choices of v1.1.
inline T5Spec tiny_gated_t5() {
  T5Spec config = tiny_t5();
  config.gated = true;
  config.tied = false;
  config.activation = Activation::gelu_tanh;
  return config;
}

}  // namespace systole
