#pragma once
// The sizes and choices of a gpt: the GPT-2 family (Radford et al., "Language models are unsupervised multitask
// learners", 2019) by default, and its later relatives: rms norms, rotary positions, grouped queries, no biases.

#include <string>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/spec/workload.h"

namespace systole {

// Low-rank adapters (Hu et al., arXiv:2106.09685): y = x W + scale (x A) B with W frozen and B = 0 at first.
struct LoraConfig {
  std::int64_t rank = 0;  // 0: none
  double scale = 1;       // alpha / rank in the paper
  std::vector<std::string> targets = {"attn.q", "attn.k", "attn.v", "attn.o", "mlp.up", "mlp.down"};
};

struct GptConfig {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t kv_heads = 0;  // 0: heads; fewer: grouped queries
  std::int64_t mlp = 0;       // 0: 4 width
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;
  ModelSpec::Norm norm = ModelSpec::Norm::layer;
  ModelSpec::Activation activation = ModelSpec::Activation::gelu_tanh;
  ModelSpec::Position position = ModelSpec::Position::learned;
  double theta = 10000;  // of rotary positions
  bool bias = true;      // of projections and layer norms
  bool tied = true;      // the head is the token embedding
  double dropout = 0;    // of the embedding and of what attention and mlp add to the residual, when training
  double eps = 1e-5;     // of the norms
  LoraConfig lora;
  bool unrolled = false;  // no repeat: for the law unrolled = rolled

  std::int64_t head() const { return width / heads; }
};

GptConfig gpt_config(const ModelSpec& spec);

// The same with the zeros replaced by what they stand for.
// Errors: Failure(invalid) that names the key and the values that would do.
GptConfig checked(GptConfig config);

}  // namespace systole
