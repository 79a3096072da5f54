#pragma once
// A t5 as a Model: an encoder that sees its row in both directions, a decoder that sees its own tokens so far and all
// that the encoder gave. One token embedding for both; RMS norms before each part; scores are not scaled; places enter
// by relative positions alone (relative_position.h), one table for each stack. Departs from the published one in one
// thing: no dropout on attention's probabilities and within the feed-forward.
//
// Generating: prefill encodes the prompt, keeps the keys and values that each layer of the decoder has of it, and runs
// the decoder on the token that every row of targets begins with, kT5Start.

#include "describe/models/model.h"
#include "describe/models/t5/config.h"

namespace systole {

constexpr std::int32_t kT5Start = 0;

// Task pairs. Errors: as checked(config).
std::unique_ptr<const Model> make_t5(const T5Config& config);

}  // namespace systole
