#include "describe/models/model.h"

namespace systole {

Graph Model::step(std::int64_t, std::int64_t, const PagedCache&) const { return prefill(1, 1, 1); }

Graph Model::score(std::int64_t, const PagedCache&) const {
  fail(error(ErrorKind::unsupported, "a model of family '{}' does not say how likely a text is", family())
           .hinted("use a model that goes on from a text: model.family: gpt or llama"));
}

Graph Model::prefill(std::int64_t, std::int64_t, std::int64_t) const {
  fail(error(ErrorKind::unsupported, "a model of family '{}' does not generate text", family())
           .hinted("use a language model: model.family: gpt, llama or t5"));
}

Graph Model::hidden(const BatchShape&) const {
  fail(error(ErrorKind::unsupported, "a model of family '{}' has no vectors of its tokens", family())
           .hinted("use a language model or a bert: model.family: gpt, llama or bert"));
}

Graph Model::decode(std::int64_t slots, std::int64_t cache) const { return prefill(slots, 1, cache); }

std::int64_t num_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const Parameter& p : model.parameters()) count += p.type.num_elements();
  return count;
}

std::int64_t num_trainable(const Model& model) {
  std::int64_t count = 0;
  for (const Parameter& p : model.parameters()) count += p.trainable ? p.type.num_elements() : 0;
  return count;
}

}  // namespace systole
