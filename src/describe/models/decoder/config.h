#pragma once
// The sizes and choices of a decoder. The defaults are GPT-2's (Radford et al., "Language models are unsupervised
// multitask learners", 2019); a family is a set of them, filled in by describe/spec: llama (Touvron et al.,
// arXiv:2302.13971 and 2307.09288; Grattafiori et al., arXiv:2407.21783) has rms norms, rotary positions, grouped
// queries, a gated feed-forward part and no biases.

#include <optional>
#include <string>
#include <vector>

#include "describe/graph/ops/ops.h"
#include "describe/spec/workload.h"

namespace systole {

// Low-rank adapters (Hu et al., arXiv:2106.09685): y = x W + scale (x A) B with W frozen and B = 0 at first.
struct LoraConfig {
  std::int64_t rank = 0;                  // 0: none
  double scale = 1;                       // alpha / rank in the paper
  std::vector<std::string> targets = {};  // projections; empty: all that the model has
};

// Experts in the place of one feed-forward part (experts.h).
struct ExpertsConfig {
  std::int64_t count = 0;  // 0: none
  std::int64_t top_k = 2;  // that a token goes to
  double capacity_factor = 1.25;
  bool dropless = false;
  std::int64_t group = 0;   // tokens; 0: a row
  std::int64_t shared = 0;  // experts that all tokens go to
  bool normalized = true;   // the gates of a token add up to 1
  double balance = 0.01;    // of the balancing loss; 0: none
  ModelSpec::Experts::Scores scores = ModelSpec::Experts::Scores::softmax;
  double scale = 1;               // of the gates
  std::int64_t dense_layers = 0;  // first ones, without experts
  std::int64_t every = 1;         // of the others, the last of each `every` has experts
  std::int64_t dense_mlp = 0;     // width of the feed-forward part of layers without
};

// Multi-head latent attention (block.h): widths of what queries, and keys and values, are made of, and of a head's
// parts.
struct LatentConfig {
  std::int64_t q_rank = 0;   // 0: queries are made of the token itself
  std::int64_t kv_rank = 0;  // 0: no latent attention
  std::int64_t nope = 0, rope = 0, value = 0;
  bool on() const { return kv_rank > 0; }
};

struct DecoderConfig {
  const char* family = "gpt";  // for people
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t kv_heads = 0;  // 0: heads; fewer: grouped queries
  std::int64_t head = 0;      // 0: width / heads
  std::int64_t mlp = 0;       // 0: 4 width; with experts the width of one
  ExpertsConfig experts;
  LatentConfig latent;
  std::int64_t window = 0;  // > 0: keys that a query sees
  bool parallel = false;    // x += o(attend(norm1 x)) + down(… norm1 x): one norm a block
  bool qk_norm = false;     // q and k of each head through an rms norm, before positions
  bool gated = false;       // down(activation(gate x) ∘ up x), not down(activation(up x))
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;
  ModelSpec::Norm norm = ModelSpec::Norm::layer;
  ModelSpec::Activation activation = ModelSpec::Activation::gelu_tanh;
  ModelSpec::Position position = ModelSpec::Position::learned;
  double theta = 10000;  // of rotary positions
  std::optional<RotaryScaling> rope_scaling;
  bool bias = true;    // of projections and layer norms
  bool tied = true;    // the head is the token embedding
  double dropout = 0;  // of the embedding and of what attention and mlp add to the residual, when training
  double eps = 1e-5;   // of the norms
  LoraConfig lora;
  bool unrolled = false;  // no repeat: for the law unrolled = rolled
};

DecoderConfig decoder_config(const ModelSpec& spec);

// Layers in a repeat: those without experts that come first, where there are such, then the others, a period of unlike
// ones at a time where only every n-th has experts.
struct LayerGroup {
  const char* name;                   // of the repeat's body
  std::int64_t first, count;          // its first layer, and how often the period comes
  std::vector<DecoderConfig> period;  // of the layers of one
  std::int64_t size() const { return static_cast<std::int64_t>(period.size()); }
};
std::vector<LayerGroup> layer_groups(const DecoderConfig& config);

// The same with the zeros replaced by what they stand for.
// Errors: Failure(invalid) that names the key and the values that would do.
DecoderConfig checked(DecoderConfig config);

}  // namespace systole
