#pragma once
// The sizes and choices of a bert (Devlin et al., arXiv:1810.04805; describe/models/bert).

#include <cstdint>
#include <vector>

#include "describe/spec/families/parts.h"

namespace systole {

struct BertSpec {
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t context = 0;     // tokens per row
  std::int64_t vocabulary = 0;  // rows of the embedding, at least the tokenizer's
  std::int64_t mlp = 0;         // hidden width of the feed-forward part; 0: 4 width
  double mlp_ratio = 0;         // mlp / width if the document gives that, else 0
  std::int64_t types = 2;       // segment types; not a key
  double eps = 1e-12;           // epsilon of the norms
  Activation activation = Activation::gelu;
  double dropout = 0;  // on the embedding and the outputs of attention and mlp, in training
  Loss loss = Loss::cross_entropy;

  std::int64_t head_width() const { return width / heads; }
  const char* name() const { return "bert"; }
  Task task() const { return Task::masked; }
  static std::vector<ModelFamily> families();
};

}  // namespace systole
