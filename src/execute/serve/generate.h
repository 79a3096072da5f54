#pragma once
// Generates tokens for a list of prompts; keeps the engine's slots filled until all sequences have ended. The result of
// a sequence depends on its prompt, the options and its index in the list, not on the number of slots or the other
// sequences.

#include <functional>

#include "execute/serve/engine.h"
#include "execute/serve/serving_loop.h"

namespace systole {

struct GenerateOptions {
  SamplingOptions sampling;
  std::int64_t max_tokens = 256;   // new tokens per sequence
  std::int64_t min_tokens = 0;     // no token of `stop` is drawn before a sequence has this many
  std::vector<std::int32_t> stop;  // tokens that end a sequence; not part of the result
  DraftSource* drafts = nullptr;   // as ServingLoopOptions
};

struct Generated {
  std::vector<std::int32_t> tokens;  // without the prompt
  SequenceEnd end = SequenceEnd::max_tokens;
};

// Called with each new token; false ends all sequences (SequenceEnd::asked).
using OnToken = std::function<bool(std::size_t sequence, std::int32_t token)>;

// One result per prompt. Errors: invalid (options; a prompt, named by its index); those of the device.
Result<std::vector<Generated>> generate(Engine& engine, std::span<const std::vector<std::int32_t>> prompts,
                                        const GenerateOptions& options, const OnToken& on_token = nullptr);

}  // namespace systole
