#pragma once
// How likely a model finds texts: the sum of the log probabilities (natural) of their tokens, by the served engine, so
// that it is the same number alone and in any company. Tokens, windows and what is cut are those of
// lm-evaluation-harness (lm_eval/api/model.py), but for the tokens that begin a sequence: here they are those with which
// the model is served.
//
//   LogLikelihood likelihood(engine, tokenizer, before);       // before: ServedModel's
//   TRY(likelihood.of_continuations("The sky is", {{" blue", " green"}}));
//
// Thread safety: one thread at a time; while a ServingLoop is at work the engine belongs to that.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/tokenizer.h"
#include "execute/serve/engine.h"

namespace systole {

// Windows of a sequence of `all` tokens, of which `given` are there before its text: where each ends. It scores the
// tokens from the end of the one before (the first: from `given`), by the up to `most` tokens before its last.
std::vector<std::size_t> window_ends(std::size_t given, std::size_t all, std::size_t most);

class LogLikelihood {
 public:
  struct Score {
    double value = 0;  // natural
    std::int64_t tokens = 0;
    bool cut = false;  // the context was too long, and its beginning was left out
  };

  // `before`: tokens at the start of each sequence. The engine must outlive this.
  // REQUIRES: the engine was created with `score`.
  LogLikelihood(Engine& engine, const Tokenizer& tokenizer, std::vector<std::int32_t> before);

  // Of each text behind the context. White space at the end of the context counts to them. Errors: does_not_fit: one has
  // no token of its own, or more than the model's context; invalid: damaged weights; those of the device.
  Result<std::vector<Score>> of_continuations(std::string_view context, std::span<const std::string> texts);
  // Of a whole text, in windows that do not overlap, each with as much context as still fits: one token before a full
  // window. `wanted` is asked before each; false: no more. Errors: invalid and the device's, as above; interrupted.
  // REQUIRES: not text.empty().
  Result<Score> of_text(std::string_view text, const std::function<bool()>& wanted = {});

 private:
  using Tokens = std::vector<std::int32_t>;
  Tokens tokens_of(std::string_view text);
  void use_first_slot();
  Result<double> sum_after(std::int64_t length, std::span<const std::int32_t> tokens,
                           std::span<const std::int32_t> next);

  Engine& engine_;
  const Tokenizer tokenizer_;
  const Tokens before_;
  Encoder encoder_;
};

}  // namespace systole
