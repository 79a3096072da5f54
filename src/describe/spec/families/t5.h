#pragma once
// The sizes and choices of a t5 (Raffel et al., arXiv:1910.10683; describe/models/t5): v1.0 by default; v1.1 (Shazeer,
// arXiv:2002.05202) has gated feed-forward parts and an untied head.

#include <cstdint>
#include <vector>

#include "describe/spec/families/parts.h"

namespace systole {

struct T5Spec {
  std::int64_t layers = 0, decoder_layers = 0;  // of encoder and decoder; decoder_layers 0: as many as layers
  std::int64_t width = 0, heads = 0;
  std::int64_t head = 0;                         // head size; 0: width / heads
  std::int64_t context = 0, target_context = 0;  // tokens per row of encoder, decoder; target_context 0: as context
  std::int64_t vocabulary = 0;                   // rows of the embedding, at least the tokenizer's
  std::int64_t mlp = 0;                          // hidden width of the feed-forward part; 0: 4 width
  double mlp_ratio = 0;                          // mlp / width if the document gives that, else 0
  std::int64_t relative_buckets = 32;            // number of buckets for relative distances
  std::int64_t relative_furthest = 128;          // from this distance on, all share the last bucket
  bool gated = false;                            // down(activate(gate(x)) up(x)) instead of down(activate(up(x)))
  bool tied = true;                              // the head shares the embedding, and its input is scaled by width^-0.5
  double eps = 1e-6;                             // epsilon of the norms
  Activation activation = Activation::relu;
  double dropout = 0;  // on the embeddings and the outputs of attention and mlp, in training
  Loss loss = Loss::cross_entropy;

  const char* name() const { return "t5"; }
  Task task() const { return Task::pairs; }
  static std::vector<ModelFamily> families();
  static void add_keys(Schema& schema);  // keys of this family only
};

}  // namespace systole
