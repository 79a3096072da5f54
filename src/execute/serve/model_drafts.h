#pragma once
// Drafts of a smaller model: its likeliest next token, and so on from that. It has an engine of its own, with a cache
// of as many slots as the engine that it drafts for, and follows the sequences there by their tokens alone:
//
//   tokens of the slot's sequence   1 2 3 4 9        of which 3 4 were drafts, and 9 was drawn instead of the next
//   computed here                   1 2 3 4 5        5 was the next draft
//   computed now                            9        in the place of 5, and then drafts of what follows 9
//
// What the sequence and the slot begin with in common is kept, the rest is computed anew in its place. So wrong drafts,
// sequences that end, are removed or give way, and those that come into their slots need no further care.
//
// Thread safety: one thread at a time.

#include <memory>

#include "execute/serve/draft_source.h"
#include "execute/serve/engine.h"

namespace systole {

// Of an engine that drafts for `target`: slots and cache are the same, and a decode has room for two tokens of as many
// sequences as can have drafts at once. REQUIRES: that has drafts.
EngineOptions draft_engine_options(const Engine& target);

class ModelDrafts : public DraftSource {
 public:
  // Drafts are below `vocabulary`. REQUIRES: the engine has drafts (EngineOptions), and the slots of the one that it
  // drafts for.
  ModelDrafts(std::unique_ptr<Engine> engine, std::int64_t vocabulary);

  // A sequence that is longer than the engine's cache, or has a token outside its vocabulary, gets none; nor does one
  // whose prompt is not computed yet: a call computes at most as many tokens of these as the engine does at once.
  Status draft(std::span<DraftedSequence> sequences, std::int64_t room) override;

  // All that its arena holds: weights, keys and values, and what is computed in between.
  Bytes memory() const { return engine_->executor().arena(); }

 private:
  bool knows(std::span<const std::int32_t> tokens) const;
  Result<bool> catch_up(const DraftedSequence& sequence, std::int64_t& prefill);
  Result<std::int32_t> likeliest_after(std::int64_t slot) const;

  std::unique_ptr<Engine> engine_;
  std::size_t vocabulary_;
  std::vector<std::vector<std::int32_t>> computed_;  // per slot: the tokens in its cache
  std::vector<Engine::Next> next_;                   // of the next decode
};

}  // namespace systole
