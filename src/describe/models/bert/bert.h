#pragma once
// A bert (Devlin et al., arXiv:1810.04805): an encoder that sees a row in both directions, trained to say which tokens
// were masked. Embedding of token, place and segment type, normed; blocks that norm after each addition; a head of one
// dense layer, a norm, and the token embedding with a bias. Departs from the published one in two things: no dropout on
// attention's probabilities, which attention never materialises, and no task on pairs of sentences, hence no pooler.

#include "describe/models/model.h"
#include "describe/spec/workload.h"

namespace systole {

struct BertConfig {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t mlp = 0;  // 0: 4 width
  std::int64_t vocabulary = 30522;
  std::int64_t context = 512;
  std::int64_t types = 2;  // segment types
  ModelSpec::Activation activation = ModelSpec::Activation::gelu;
  double dropout = 0;  // of the embedding and of what attention and mlp add, when training
  double eps = 1e-12;  // of the norms
  bool unrolled = false;

  std::int64_t head() const { return width / heads; }
};

BertConfig bert_config(const ModelSpec& spec);

// Task masked. Values that recompute policies and probes may name are those of a gpt's block, without the norms.
// Errors: Failure(invalid) that names the key and the values that would do.
std::unique_ptr<const Model> make_bert(const BertConfig& config);

}  // namespace systole
