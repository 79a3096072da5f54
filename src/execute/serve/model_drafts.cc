#include "execute/serve/model_drafts.h"

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

// Tokens of a sequence that a decode computes: if all its drafts were right, the last of them and the one after it.
constexpr std::size_t kByDecode = 2;

}  // namespace

EngineOptions draft_engine_options(const Engine& target) {
  EngineOptions options;
  options.slots = target.slots();
  options.cache = target.cache();
  // A step of n sequences has as many rows as one of one and its drafts, so at most half of these have a draft.
  const std::int64_t rows = static_cast<std::int64_t>(kByDecode) * options.slots;
  options.drafts = std::min(rows, target.options().drafts + 1) - 1;
  return options;
}

ModelDrafts::ModelDrafts(std::unique_ptr<Engine> engine, std::int64_t vocabulary)
    : engine_(std::move(engine)),
      vocabulary_(static_cast<std::size_t>(std::min(vocabulary, engine_->vocabulary()))),
      computed_(static_cast<std::size_t>(engine_->slots())) {}

bool ModelDrafts::knows(std::span<const std::int32_t> tokens) const {
  return std::ranges::all_of(tokens, [&](std::int32_t token) { return token < engine_->vocabulary(); });
}

// Computes what the slot lacks of the sequence, at once or with the next decode, and at most `prefill` tokens at once.
// False: more is lacking.
Result<bool> ModelDrafts::catch_up(const DraftedSequence& sequence, std::int64_t& prefill) {
  std::vector<std::int32_t>& computed = computed_.at(static_cast<std::size_t>(sequence.slot));
  // The last token is computed in any case: its logits are needed.
  const std::span<const std::int32_t> before = sequence.tokens.first(sequence.tokens.size() - 1);
  computed.erase(std::ranges::mismatch(computed, before).in1, computed.end());
  engine_->begin(sequence.slot, std::ssize(computed));
  const std::span<const std::int32_t> lacking = sequence.tokens.subspan(computed.size());
  const auto rows = static_cast<std::size_t>(engine_->options().batches.back());
  if (!computed.empty() && lacking.size() <= kByDecode && next_.size() + lacking.size() <= rows) {
    for (const std::int32_t token : lacking) next_.push_back({sequence.slot, token});
    computed.insert(computed.end(), lacking.begin(), lacking.end());
    return true;
  }
  const std::span<const std::int32_t> piece =
      lacking.first(std::min(lacking.size(), static_cast<std::size_t>(prefill)));
  if (piece.empty()) return false;
  TRY(engine_->extend(sequence.slot, piece));
  prefill -= std::ssize(piece);
  computed.insert(computed.end(), piece.begin(), piece.end());
  return piece.size() == lacking.size();
}

Result<std::int32_t> ModelDrafts::likeliest_after(std::int64_t slot) const {
  const std::span<const float> logits = engine_->logits(slot).first(vocabulary_);
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == INFINITY) {
      return error(ErrorKind::invalid, "the logit of token {} is {}, of the model that drafts", i, logits[i])
          .hinted("its weights are damaged or have diverged; --speculate ngram drafts without a model");
    }
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<std::int32_t>(best);
}

Status ModelDrafts::draft(std::span<DraftedSequence> sequences, std::int64_t room) {
  std::vector<DraftedSequence*> drafted;
  std::int64_t prefill = engine_->limits().prefill;
  next_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    DraftedSequence& sequence = sequences[i];
    sequence.drafts.clear();
    // The last draft is not computed here.
    const std::int64_t fit = engine_->cache() - std::ssize(sequence.tokens) + 1;
    sequence.most = std::min({sequence.most, share_of(room, sequences.size() - i), fit});
    if (sequence.most < 1 || !knows(sequence.tokens)) continue;
    if (!TRY(catch_up(sequence, prefill))) continue;
    room -= sequence.most;
    drafted.push_back(&sequence);
  }
  while (!drafted.empty()) {
    TRY(engine_->decode(next_));
    next_.clear();
    for (DraftedSequence* sequence : drafted) {
      const std::int32_t token = TRY(likeliest_after(sequence->slot));
      sequence->drafts.push_back(token);
      if (std::ssize(sequence->drafts) == sequence->most) continue;
      next_.push_back({sequence->slot, token});
      computed_[static_cast<std::size_t>(sequence->slot)].push_back(token);
    }
    std::erase_if(drafted, [](const DraftedSequence* s) { return std::ssize(s->drafts) == s->most; });
  }
  return {};
}

}  // namespace systole
