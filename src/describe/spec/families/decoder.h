#pragma once
// The sizes and choices of a decoder (describe/models/decoder): gpt (Radford et al., "Language models are unsupervised
// multitask learners", 2019) and llama (Touvron et al., arXiv:2302.13971 and 2307.09288; Grattafiori et al.,
// arXiv:2407.21783). llama has RMS norms, rotary positions, grouped queries, a gated feed-forward part and no biases.
// The two differ only in the defaults of their keys.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/spec/families/parts.h"

namespace systole {

// Scaling of rotary positions to contexts longer than the original one: none, or as in Llama 3.1: low frequencies are
// divided by `factor`, high ones kept (describe/ops/rotary.cc has the formula).
struct RopeScaling {
  enum class Kind { none, llama3 };
  Kind kind = Kind::none;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_context = 8192;
};

// A mixture of experts, each of width `mlp`, instead of a block's feed-forward part.
struct ExpertsSpec {
  std::int64_t experts = 0;  // 0: none
  std::int64_t top_k = 2;    // experts per token
  double capacity_factor = 1.25;
  bool dropless = false;
  std::int64_t group = 0;           // tokens of a row that compete for capacity; 0: the whole row
  std::int64_t shared_experts = 0;  // experts that all tokens use
  bool normalize = true;            // a token's gates are normalized to a sum of 1
  enum class Scores { softmax, sigmoid } scores = Scores::softmax;
  double scale = 1;               // factor on the combined output of a token's experts
  std::int64_t dense_layers = 0;  // number of first layers without experts
  std::int64_t every = 1;         // of the remaining layers, the last of each `every` has experts
  std::int64_t dense_mlp = 0;     // feed-forward width of layers without experts
  double balance = 0.01;          // weight of the balancing loss; 0: none
  // Units that a pipeline may be split between: layers, or groups of `every` layers.
  std::int64_t periods(std::int64_t of_layers) const { return dense_layers + (of_layers - dense_layers) / every; }
};

// Multi-head latent attention: ranks of the projections for queries and for keys and values, and widths of a head.
struct LatentSpec {
  std::int64_t q_rank = 0;   // 0: queries are projected directly from the input
  std::int64_t kv_rank = 0;  // 0: no latent attention
  std::int64_t nope = 0, rope = 0, value = 0;
  bool on() const { return kv_rank > 0; }
};

// Low-rank adapters (Hu et al., arXiv:2106.09685): y = x W + scale (x A) B with W frozen and B = 0 initially.
struct AdaptersSpec {
  std::int64_t rank = 0;                  // 0: none; above 0 every other weight is frozen
  double scale = 1;                       // alpha / rank in the paper
  std::vector<std::string> targets = {};  // projections; not a key; empty: all of the model
};

struct DecoderSpec {
  enum class Family { gpt, llama };

  Family family = Family::gpt;
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t kv_heads = 0;     // divides heads; 0: equal to heads; fewer: grouped queries
  std::int64_t head = 0;         // head size; 0: width / heads
  std::int64_t context = 0;      // tokens per row
  std::int64_t vocabulary = 0;   // rows of the embedding, at least the tokenizer's
  std::int64_t mlp = 0;          // hidden width of the feed-forward part, or of one expert; 0: 4 width
  double mlp_ratio = 0;          // mlp / width if the document gives that, else 0
  std::int64_t window = 0;       // above 0: number of keys that a query sees, ending with its own; 0: all before it
  bool parallel_blocks = false;  // attention and feed-forward part read the same norm and their outputs are added
  bool gated = false;            // the feed-forward part has an activated gate
  bool qk_norm = false;          // RMS norm on each head's query and key, before positions
  ExpertsSpec moe;
  LatentSpec mla;
  Norm norm = Norm::layer;
  double eps = 1e-5;  // epsilon of the norms
  Position position = Position::learned;
  double theta = 10000;  // base of rotary positions
  RopeScaling rope_scaling;
  bool tied = true;  // the output projection shares the embedding
  AdaptersSpec adapters;
  Activation activation = Activation::gelu_tanh;
  bool bias = true;    // biases of projections and layer norms
  double dropout = 0;  // on the embedding and on what attention and mlp add to the residual, in training
  Loss loss = Loss::cross_entropy;

  const char* name() const { return family == Family::llama ? "llama" : "gpt"; }
  Task task() const { return Task::language; }
  static std::vector<ModelFamily> families();
};

}  // namespace systole
