#pragma once
// Runs an Engine by a ServingScheduler: requests are added, step() prefills and decodes one batch and hands out each new
// token. A sequence's tokens depend on its request alone, not on its slot or on what else is in the batch (engine.h).
//
// An engine with drafts computes guesses of a sequence's next tokens (draft_source.h) together with its last. Each token
// is still drawn from the logits after the one before, by the same random bits; it goes on for as long as what is drawn
// is what was guessed. So an answer is the same as without drafts where logits have the same bits in any company, at
// every temperature and with all that a request asks for.
//
//   ServingLoop loop(*engine, {.waiting = 64});
//   TRY(loop.add({.id = 1, .prompt = tokens, .max_tokens = 100, .stop = {eos}},
//                {.token = [](std::int32_t t) { ...; return true; }, .end = [](Generated::End why) { ... }}));
//   while (TRY(loop.step())) {}
//
// Thread safety: one thread at a time. Receivers are called within step() and must not call the loop.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "describe/serving/scheduler.h"
#include "execute/serve/drafts.h"
#include "execute/serve/engine.h"
#include "execute/serve/grammar/token_masks.h"
#include "execute/serve/logprobs.h"
#include "execute/serve/sampling.h"
#include "ground/base/clock.h"

namespace systole {

// Why a sequence ended.
enum class SequenceEnd {
  stop,  // a token of `stop`, or nothing can follow by the grammar
  max_tokens,
  cache_full,  // prompt and tokens fill the model's context
  asked,       // the receiver wanted no more
  no_token,    // none that may come next conforms to the grammar
};
const char* name_of(SequenceEnd end);

struct SequenceRequest {
  std::uint64_t id = 0;  // unique among those that have not ended
  std::string key = {};  // see scheduler.h
  std::int64_t priority = 0;
  std::vector<std::int32_t> prompt;
  SamplingOptions sampling = {};
  std::uint64_t draw = 0;                     // number of the sequence in the sampler's random bits
  std::int64_t max_tokens = 256;              // new tokens
  std::int64_t min_tokens = 0;                // no token of `stop` is drawn before the sequence has this many
  std::vector<std::int32_t> stop = {};        // tokens that end the sequence; not handed out
  std::optional<std::int64_t> logprobs = {};  // with each token its log probability and those of so many likeliest
  // The tokens' text conforms to it. Tokens of `stop` are drawn exactly where it may end, but for min_tokens; used by
  // the loop's thread only, and shared by as many sequences as wish.
  std::shared_ptr<grammar::TokenMasks> grammar = {};
  std::int64_t adapter = 0;  // Engine::set_adapter
};

// Where a sequence is: in exactly one of them at each moment, from when it was added until its end. The first is the one
// that it is added in.
enum class SequencePart {
  queue,    // it has not begun
  wait,     // it has begun, and others are computed, or it gave way to them
  prefill,  // tokens of its prompt, or of its answer again, are computed
  decode,   // its next token's logits are computed, with those of others
  sample,   // its token is drawn, and the receiver has it
};
const char* name_of(SequencePart part);

struct SequenceReceiver {
  std::function<bool(std::int32_t token)> token;            // false: no more
  std::function<void(SequenceEnd)> end = {};                // once, last, unless the request was removed
  std::function<void(const TokenLogprobs&)> logprobs = {};  // before `token`, if the request asks for them
  std::function<void(SequencePart)> part = {};              // it enters this one
};

struct ServingLoopOptions {
  std::int64_t waiting = 0;         // as ServingLimits
  std::int64_t prefill = 0;         // tokens of prompts per step; 0: as many as the engine computes at once
  std::int64_t prefill_beside = 0;  // as ServingLimits
  Seconds hold = {};                // as ServingLimits, by `clock`, which must outlive the loop
  Clock* clock = nullptr;
  // Makes the drafts of an engine that has some; null: NgramDrafts. It must outlive the loop, which alone uses it.
  DraftSource* drafts = nullptr;
};

class ServingLoop {
 public:
  // The engine must outlive the loop. Slots and cache are the engine's. REQUIRES: a clock, with `hold`.
  ServingLoop(Engine& engine, const ServingLoopOptions& options);

  // Errors: invalid (the prompt is empty, longer than the cache, or has a token outside the vocabulary; sampling
  // options, or a bias of such a token; min_tokens where every token that may be drawn is of `stop`); busy (as many
  // requests wait as may).
  Status add(SequenceRequest request, SequenceReceiver receiver);
  // Forgets a request; its receiver is not called again. False: unknown, or ended.
  bool remove(std::uint64_t id);
  // Computes one batch. False: nothing waits or runs. Errors: those of the device and of the sampler (weights that are
  // not finite); the loop is unusable after one.
  Result<bool> step();

  // While it holds, requests that have not begun wait (scheduler.h). To change the engine's weights: hold, step until
  // begun() is 0, write them, forget_cache, and hold no more. So no sequence has tokens, or keys and values, of both.
  void hold(bool holds) { scheduler_.hold(holds); }
  std::int64_t begun() const { return scheduler_.begun(); }
  // Keys and values of prompts so far are not used again. REQUIRES: begun() is 0.
  void forget_cache() { scheduler_.forget_pages(); }

  std::int64_t waiting() const { return scheduler_.waiting(); }
  std::int64_t running() const { return scheduler_.running(); }
  // What has happened since the beginning.
  struct Counts {
    std::int64_t prefilled = 0;  // tokens of prompts computed
    std::int64_t cached = 0;     // tokens of prompts found in the cache, when their sequences began first
    std::int64_t preemptions = 0;
    std::int64_t drafted = 0;   // guesses of tokens computed
    std::int64_t accepted = 0;  // of them, those that were drawn
    bool operator==(const Counts&) const = default;
  };
  Counts counts() const;
  double pages_used() const { return scheduler_.pages_used(); }
  std::int64_t prefill_beside() const { return scheduler_.beside(); }

 private:
  struct Sequence {
    SequenceRequest request;
    SequenceReceiver receiver;
    Sampler sampler;
    std::vector<std::int32_t> all;                    // prompt and answer
    std::optional<grammar::GrammarState> state = {};  // with a grammar
    std::int64_t tokens = 0;
    std::int32_t last = 0;
    bool has_begun = false;  // also before it gave way to others
  };
  Status check_options(const SequenceRequest& request) const;
  Status compute(const ServingStep::Piece& piece);
  Seconds lap();
  void enter(std::uint64_t id, SequencePart part);
  Status fill_next(ServingStep& step);
  Status take_tokens(const ServingStep::Sequence& placed, std::size_t row);
  Status take_token(std::uint64_t id, std::int64_t slot, std::span<const float> logits);
  bool fill_mask(const Sequence& sequence);
  void end(std::uint64_t id, SequenceEnd why);

  Engine& engine_;
  Clock* const clock_;  // none: nobody asks how long anything takes
  Seconds mark_;        // when the last lap ended
  ServingScheduler scheduler_;
  std::map<std::uint64_t, Sequence> sequences_;
  std::vector<Engine::Next> next_;  // of the step
  DraftSource* source_;             // null: ngram_
  NgramDrafts ngram_;
  std::vector<DraftedSequence> drafted_;  // those that decode in the step, if it has room for drafts
  std::vector<std::uint64_t> mask_;       // of the token, if its sequence has a grammar
  Counts counts_;
};

}  // namespace systole
