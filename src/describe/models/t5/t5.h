#pragma once
// A t5 as a Model: a bidirectional encoder, and a decoder with causal self-attention and cross-attention over the
// encoder's output. Both share one token embedding; RMS norms come before each part; scores are not scaled; relative
// positions (relative_position.h), one table per stack, are the only position encoding. It differs from the published
// model in one point: no dropout on attention probabilities or inside the feed-forward part.
//
// Generating: prefill encodes the prompt, stores its cross-attention keys and values for each decoder layer, and runs
// the decoder on kT5Start, the first token of every target row.

#include "describe/models/model.h"
#include "describe/models/t5/config.h"

namespace systole {

constexpr std::int32_t kT5Start = 0;

// For task pairs. `unrolled`: without repeats, for the law unrolled = rolled. Errors: as checked(config).
std::unique_ptr<const Model> make_t5(const T5Spec& config, bool unrolled = false);

}  // namespace systole
