#pragma once
// A decoder (gpt, llama) as a Model: embedding, pre-norm blocks (block.h) in one repeat, final norm, head. Projections
// for q, k, v and o are separate, so that each reshapes to a matrix without moving a byte. Departs from the published
// GPT-2 in one thing: no dropout on attention's probabilities, which attention never materialises.

#include "describe/models/decoder/config.h"
#include "describe/models/model.h"

namespace systole {

// Errors: as checked(config).
std::unique_ptr<const Model> make_decoder(const DecoderConfig& config);

}  // namespace systole
