#pragma once
// How often a batch runs each function of the engine's Program (describe/job/engine_program.h), counted before it starts,
// so that a predicted time is that of the steps that are run.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "describe/job/engine_program.h"

namespace systole {

using EngineCalls = std::map<std::string, std::int64_t>;  // by the function's name

struct SequenceSize {
  std::int64_t tokens = 0;  // of its prompt, or of a text
  std::int64_t answer = 0;  // new tokens, at most
};

// Of sequences that begin in this order, each as soon as a slot is free (serving_loop.h): prompts in the longest pieces
// and a last one, then one token a step of each sequence that runs. No prompt begins as another does.
// REQUIRES (all): completed options; no sequence is longer than they allow.
EngineCalls generation_calls(const EngineOptions& options, std::span<const SequenceSize> sequences);
// Of texts whose hidden states are computed, those of one length together (text_vectors.h).
EngineCalls hidden_calls(const EngineOptions& options, std::span<const SequenceSize> texts);
// Of inputs that are scored one after the other (eval/log_likelihood.h).
EngineCalls score_calls(const EngineOptions& options, std::span<const SequenceSize> inputs);

}  // namespace systole
