#pragma once
// A bert (Devlin et al., arXiv:1810.04805): a bidirectional encoder, trained to predict masked tokens. It has normed
// embeddings of token, position and segment type; post-norm blocks; and a head of one dense layer, a norm, and the
// token embedding with a bias. It differs from the published model in two points: no dropout on attention
// probabilities, which are never materialised, and no task on sentence pairs, hence no pooler.

#include "describe/models/model.h"
#include "describe/spec/families/bert.h"

namespace systole {

// For task masked. Recompute policies and probes may name the values of a gpt's block, without the norms. `unrolled`:
// without a repeat, for the law unrolled = rolled. Errors: Failure(invalid) that names the key and valid values.
std::unique_ptr<const Model> make_bert(const BertSpec& config, bool unrolled = false);

}  // namespace systole
