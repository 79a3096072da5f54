#include "execute/serve/serving_loop.h"

#include <algorithm>

#include "ground/store/sha256.h"

namespace systole {

const char* name_of(SequenceEnd end) {
  switch (end) {
    case SequenceEnd::stop: return "stop";
    case SequenceEnd::max_tokens: return "max_tokens";
    case SequenceEnd::cache_full: return "cache_full";
    case SequenceEnd::asked: return "asked";
    case SequenceEnd::no_token: return "no_token";
  }
  return "?";
}

const char* name_of(SequencePart part) {
  switch (part) {
    case SequencePart::queue: return "queue";
    case SequencePart::wait: return "wait";
    case SequencePart::prefill: return "prefill";
    case SequencePart::decode: return "decode";
    case SequencePart::sample: return "sample";
  }
  return "?";
}

namespace {

ServingLimits limits_of(const Engine& engine, const ServingLoopOptions& options) {
  ServingLimits limits = engine.limits();
  limits.waiting = options.waiting;
  if (options.prefill > 0) limits.prefill = options.prefill;
  limits.prefill_beside = options.prefill_beside;
  limits.hold = options.hold;
  return limits;
}

}  // namespace

ServingLoop::ServingLoop(Engine& engine, const ServingLoopOptions& options)
    : engine_(engine),
      clock_(options.hold > Seconds() ? options.clock : nullptr),
      scheduler_(limits_of(engine, options)),
      source_(options.drafts) {
  CHECK(clock_ || options.hold <= Seconds(), "steps of {} without a clock", to_string(options.hold));
}

// Since the last lap. All of a step is of a lap of a piece or of the decode, whatever else is done meanwhile, since that
// is how long others wait.
Seconds ServingLoop::lap() {
  if (!clock_) return {};
  const Seconds now = clock_->now();
  return now - std::exchange(mark_, now);
}

// Nothing, once it has ended.
void ServingLoop::enter(std::uint64_t id, SequencePart part) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end() && found->second.receiver.part) found->second.receiver.part(part);
}

// What would fail in the middle of a step, and so for all sequences.
Status ServingLoop::check_options(const SequenceRequest& request) const {
  TRY(check(request.sampling));
  const std::int64_t vocabulary = engine_.vocabulary();
  if (!request.sampling.logit_bias.empty() && request.sampling.logit_bias.rbegin()->first >= vocabulary) {
    return key_error(ErrorKind::invalid, "logit_bias", "token {} is outside the model's vocabulary of {}",
                     request.sampling.logit_bias.rbegin()->first, vocabulary);
  }
  if (request.min_tokens <= 0) return {};
  std::vector<std::int32_t> barred = request.stop;
  barred.insert(barred.end(), request.sampling.never.begin(), request.sampling.never.end());
  std::erase_if(barred, [&](std::int32_t token) { return token < 0 || token >= vocabulary; });
  std::ranges::sort(barred);
  if (std::unique(barred.begin(), barred.end()) - barred.begin() < vocabulary) return {};
  return key_error(ErrorKind::invalid, "min_tokens", "every token that may be drawn ends the answer");
}

namespace {

// Of the whole pages of a prompt: each of its tokens and of the hash before it. Of a cryptographic hash, so that nobody
// can make a prompt that finds another's keys and values.
// Keys and values of other adapters are others.
std::vector<PageHash> hashes_of(std::span<const std::int32_t> tokens, std::int64_t page, std::int64_t adapter) {
  std::vector<PageHash> hashes;
  const auto size = static_cast<std::size_t>(page);
  for (std::size_t at = 0; at + size <= tokens.size(); at += size) {
    Sha256 hash;
    if (!hashes.empty()) hash.add(std::as_bytes(std::span(hashes.back())));
    if (hashes.empty() && adapter != 0) hash.add(std::as_bytes(std::span(&adapter, 1)));
    hash.add(std::as_bytes(tokens.subspan(at, size)));
    const Sha256::Digest digest = hash.digest();
    hashes.emplace_back(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  return hashes;
}

}  // namespace

Status ServingLoop::add(SequenceRequest request, SequenceReceiver receiver) {
  TRY(check_options(request));
  TRY(engine_.check_prompt(request.prompt));
  const std::uint64_t id = request.id;
  CHECK(!sequences_.contains(id), "request {} is there already", id);
  ServingRequest wanted{id, request.key, static_cast<std::int64_t>(request.prompt.size()), request.max_tokens,
                        request.priority};
  if (!engine_.encodes()) wanted.hashes = hashes_of(request.prompt, engine_.limits().page, request.adapter);
  const Admission admission = scheduler_.add(std::move(wanted));
  if (admission == Admission::queue_full)
    return error(ErrorKind::busy, "{} requests wait already", scheduler_.waiting()).hinted("try again later");
  CHECK(admission == Admission::accepted, "the engine accepts a prompt that the scheduler does not");
  const std::span<const std::int32_t> prompt = request.prompt;
  Sampler sampler(request.sampling, engine_.encodes() ? prompt.first(0) : prompt);
  std::vector<std::int32_t> all = std::move(request.prompt);
  std::optional<grammar::GrammarState> state;
  if (request.grammar) state.emplace(request.grammar->grammar());
  sequences_.try_emplace(
      id, Sequence{std::move(request), std::move(receiver), std::move(sampler), std::move(all), std::move(state)});
  return {};
}

bool ServingLoop::remove(std::uint64_t id) {
  scheduler_.remove(id);
  return sequences_.erase(id) > 0;
}

void ServingLoop::end(std::uint64_t id, SequenceEnd why) {
  scheduler_.remove(id);
  const auto ended = sequences_.extract(id);
  if (ended.mapped().receiver.end) ended.mapped().receiver.end(why);
}

// The tokens that conform. False: too much work.
bool ServingLoop::fill_mask(const Sequence& sequence) {
  mask_.resize(static_cast<std::size_t>(engine_.vocabulary() + 63) / 64);
  if (!sequence.request.grammar->fill(*sequence.state, mask_)) return false;
  for (const std::int32_t token : sequence.request.stop) {
    if (token < 0 || token >= engine_.vocabulary()) continue;
    const std::uint64_t bit = std::uint64_t{1} << (token % 64);
    std::uint64_t& word = mask_[static_cast<std::size_t>(token) / 64];
    word = sequence.state->may_end() ? word | bit : word & ~bit;
  }
  return true;
}

ServingLoop::Counts ServingLoop::counts() const {
  Counts counts = counts_;
  counts.preemptions = scheduler_.preemptions();
  return counts;
}

// `logits`: after the last token of the sequence.
Status ServingLoop::take_token(std::uint64_t id, std::int64_t slot, std::span<const float> logits) {
  Sequence& sequence = sequences_.at(id);
  const SequenceRequest& request = sequence.request;
  std::span<const std::int32_t> barred;
  if (sequence.tokens < request.min_tokens) barred = request.stop;
  const auto index = static_cast<std::uint64_t>(sequence.tokens);
  std::span<const std::uint64_t> mask;
  if (sequence.state) {
    if (!fill_mask(sequence)) {
      end(id, SequenceEnd::no_token);
      return {};
    }
    mask = mask_;
  }
  sequence.last = TRY(sequence.sampler.sample(logits, request.draw, index, barred, mask));
  if (std::ranges::find(request.stop, sequence.last) != request.stop.end()) {
    end(id, SequenceEnd::stop);
    return {};
  }
  if (sequence.state) {
    const bool conforms =
        sequence.last != Sampler::kNone && sequence.state->advance(request.grammar->trie().bytes_of(sequence.last));
    if (!conforms) {
      end(id, sequence.state->may_end() ? SequenceEnd::stop : SequenceEnd::no_token);
      return {};
    }
  }
  ++sequence.tokens;
  sequence.sampler.add(sequence.last);
  sequence.all.push_back(sequence.last);
  if (request.logprobs && sequence.receiver.logprobs)
    sequence.receiver.logprobs(token_logprobs(logits, sequence.last, *request.logprobs));
  if (!sequence.receiver.token(sequence.last))
    end(id, SequenceEnd::asked);
  else if (sequence.state && sequence.state->must_end())
    end(id, SequenceEnd::stop);
  else if (sequence.tokens >= request.max_tokens)
    end(id, SequenceEnd::max_tokens);
  else if (engine_.length(slot) >= engine_.cache())
    end(id, SequenceEnd::cache_full);
  return {};
}

Status ServingLoop::compute(const ServingStep::Piece& piece) {
  Sequence& sequence = sequences_.at(piece.id);
  std::span<const std::int32_t> tokens = sequence.all;
  if (engine_.encodes()) return engine_.prefill(piece.slot, tokens);
  if (piece.first) {
    engine_.begin(piece.slot, piece.begin);
    engine_.set_adapter(piece.slot, sequence.request.adapter);
    if (!std::exchange(sequence.has_begun, true)) counts_.cached += piece.begin;
  }
  counts_.prefilled += piece.end - piece.begin;
  tokens = tokens.first(static_cast<std::size_t>(piece.end)).subspan(static_cast<std::size_t>(piece.begin));
  while (!tokens.empty()) {
    const std::size_t count =
        piece.run > 0 ? std::min(tokens.size(), static_cast<std::size_t>(piece.run)) : tokens.size();
    TRY(engine_.extend(piece.slot, tokens.first(count)));
    scheduler_.ran(static_cast<std::int64_t>(count), lap());
    tokens = tokens.subspan(count);
  }
  return {};
}

// The tokens of the step's decode: the last of each sequence, and after it drafts of what comes next.
Status ServingLoop::fill_next(ServingStep& step) {
  next_.clear();
  drafted_.clear();
  if (step.room > 0) {
    for (const ServingStep::Sequence& placed : step.decode) {
      const Sequence& sequence = sequences_.at(placed.id);
      // A draft of the last token would be of no use: it needs no logits after it.
      const std::int64_t most =
          std::min(sequence.request.max_tokens - sequence.tokens - 1, engine_.cache() - std::ssize(sequence.all));
      drafted_.push_back({placed.slot, sequence.all, most});
    }
    TRY((source_ != nullptr ? *source_ : ngram_).draft(drafted_, step.room));
  }
  for (std::size_t i = 0; i < step.decode.size(); ++i) {
    const ServingStep::Sequence& placed = step.decode[i];
    next_.push_back({placed.slot, sequences_.at(placed.id).last});
    if (drafted_.empty()) continue;
    const std::vector<std::int32_t>& drafts = drafted_[i].drafts;
    scheduler_.draft(step, i, std::ssize(drafts));
    for (std::int64_t k = 0; k < placed.drafts; ++k)
      next_.push_back({placed.slot, drafts[static_cast<std::size_t>(k)]});
  }
  return {};
}

// The tokens of a sequence after a decode in which next_[row] is its last token: one, and one more for each draft that was
// drawn.
Status ServingLoop::take_tokens(const ServingStep::Sequence& placed, std::size_t row) {
  if (placed.drafts == 0) return take_token(placed.id, placed.slot, engine_.logits(placed.slot));
  const std::int64_t before = engine_.length(placed.slot) - placed.drafts;
  counts_.drafted += placed.drafts;
  for (std::int64_t right = 0;; ++right) {
    const std::size_t at = row + static_cast<std::size_t>(right);
    engine_.begin(placed.slot, before + right);  // without the drafts that are not tokens yet
    TRY(take_token(placed.id, placed.slot, engine_.logits_after(at)));
    const auto sequence = sequences_.find(placed.id);
    if (sequence == sequences_.end()) return {};  // it ended
    if (right == placed.drafts || sequence->second.last != next_[at + 1].token) {
      scheduler_.keep(placed, right);
      return {};
    }
    ++counts_.accepted;
  }
}

Result<bool> ServingLoop::step() {
  lap();
  ServingStep step = scheduler_.next();
  if (step.empty()) return false;
  const auto all_enter = [&](SequencePart part) {
    for (const ServingStep::Sequence& placed : step.decode) enter(placed.id, part);
  };
  if (step.room > 0) all_enter(SequencePart::decode);
  TRY(fill_next(step));
  // To make drafts is of the decode that computes them, also where a piece comes in between.
  const Seconds drafting = drafted_.empty() ? Seconds() : lap();
  if (step.room > 0 && !step.prefill.empty()) all_enter(SequencePart::wait);
  for (const ServingStep::Table& table : step.tables) engine_.set_table(table.slot, table.pages);
  for (const ServingStep::Piece& piece : step.prefill) {
    enter(piece.id, SequencePart::prefill);
    TRY(compute(piece));
    if (piece.last) {
      enter(piece.id, SequencePart::sample);
      TRY(take_token(piece.id, piece.slot, engine_.logits(piece.slot)));
    }
    enter(piece.id, SequencePart::wait);
  }
  all_enter(SequencePart::decode);
  TRY(engine_.decode(next_));
  all_enter(SequencePart::wait);
  std::size_t row = 0;
  for (const ServingStep::Sequence& placed : step.decode) {
    enter(placed.id, SequencePart::sample);
    TRY(take_tokens(placed, row));
    enter(placed.id, SequencePart::wait);
    row += static_cast<std::size_t>(1 + placed.drafts);
  }
  if (!next_.empty()) scheduler_.decoded(std::ssize(next_), drafting + lap());
  return true;
}

}  // namespace systole
