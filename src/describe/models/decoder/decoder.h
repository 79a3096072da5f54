#pragma once
// A decoder (gpt, llama) as a Model: embedding, pre-norm blocks (block.h) in one repeat, final norm, head. The
// projections for q, k, v and o are separate, so each reshapes to a matrix without a copy. It differs from the
// published GPT-2 in one point: no dropout on attention probabilities, which are never materialised.

#include "describe/models/decoder/config.h"
#include "describe/models/model.h"

namespace systole {

// `unrolled`: without a repeat, for the law unrolled = rolled. Errors: as checked(config).
std::unique_ptr<const Model> make_decoder(const DecoderSpec& config, bool unrolled = false);

}  // namespace systole
