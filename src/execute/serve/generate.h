#pragma once
// Prompts in, tokens out: keeps the engine's slots filled with sequences until all have ended. What a sequence gets
// depends on its prompt, the options and its place in the list, not on how many slots there are or who else is in them.

#include <functional>

#include "execute/serve/engine.h"
#include "execute/serve/sampling.h"

namespace systole {

struct GenerateOptions {
  SamplingOptions sampling;
  std::int64_t max_tokens = 256;   // new ones, per sequence
  std::int64_t min_tokens = 0;     // until a sequence has so many, no token of `stop` is drawn
  std::vector<std::int32_t> stop;  // tokens that end a sequence; not part of it
};

struct Generated {
  enum class End {
    stop,  // a token of `stop`
    max_tokens,
    cache_full,  // prompt and tokens fill the model's context
    asked,       // on_token said so
  };
  std::vector<std::int32_t> tokens;  // new ones
  End end = End::max_tokens;
};
const char* name_of(Generated::End end);

// Told of each token as it comes; false ends everything.
using OnToken = std::function<bool(std::size_t sequence, std::int32_t token)>;

// One result per prompt. Errors: invalid (options; a prompt, named by its number); those of the device.
Result<std::vector<Generated>> generate(Engine& engine, std::span<const std::vector<std::int32_t>> prompts,
                                        const GenerateOptions& options, const OnToken& on_token = nullptr);

}  // namespace systole
