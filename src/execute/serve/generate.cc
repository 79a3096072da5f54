#include "execute/serve/generate.h"

#include <algorithm>
#include <limits>

namespace systole {
namespace {

class Generation {
 public:
  Generation(Engine& engine, std::span<const std::vector<std::int32_t>> prompts, const GenerateOptions& options,
             const OnToken& on_token)
      : engine_(engine),
        prompts_(prompts),
        options_(options),
        on_token_(on_token),
        sampler_(options.sampling),
        results_(prompts.size()),
        in_slot_(static_cast<std::size_t>(engine.slots())) {}

  Result<std::vector<Generated>> run() {
    while (!asked_to_end_) {
      TRY(fill_slots());
      if (next_.empty()) break;
      TRY(engine_.decode(next_));
      const std::vector<Engine::Next> decoded = std::move(next_);
      next_.clear();
      for (const Engine::Next& entry : decoded) TRY(take_token(entry.slot));
    }
    return std::move(results_);
  }

 private:
  // Every free slot gets the next prompt, and with it a first token (which may be its last).
  Status fill_slots() {
    for (std::int64_t slot = 0; slot < engine_.slots(); ++slot) {
      while (!in_slot_[static_cast<std::size_t>(slot)] && waiting_ < prompts_.size() && !asked_to_end_) {
        if (Status done = engine_.prefill(slot, prompts_[waiting_]); !done.ok()) {
          Error error = std::move(done).error();
          error.message = fmt::format("prompt {}: {}", waiting_ + 1, error.message);
          return error;
        }
        in_slot_[static_cast<std::size_t>(slot)] = waiting_++;
        TRY(take_token(slot));
      }
    }
    return {};
  }

  std::span<const float> logits(std::int64_t slot, const Generated& result) {
    const std::span<const float> all = engine_.logits(slot);
    if (static_cast<std::int64_t>(result.tokens.size()) >= options_.min_tokens || options_.stop.empty()) return all;
    without_stop_.assign(all.begin(), all.end());
    for (const std::int32_t token : options_.stop) {
      if (token >= 0 && static_cast<std::size_t>(token) < all.size())
        without_stop_[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
    }
    return without_stop_;
  }

  Status take_token(std::int64_t slot) {
    if (asked_to_end_) return {};
    std::optional<std::size_t>& sequence = in_slot_[static_cast<std::size_t>(slot)];
    Generated& result = results_[*sequence];
    const std::int32_t token = TRY(sampler_.sample(logits(slot, result), *sequence, result.tokens.size()));
    const auto end = [&](Generated::End why) {
      result.end = why;
      sequence.reset();
    };
    if (std::find(options_.stop.begin(), options_.stop.end(), token) != options_.stop.end()) {
      end(Generated::End::stop);
      return {};
    }
    result.tokens.push_back(token);
    if (on_token_ && !on_token_(*sequence, token)) {
      asked_to_end_ = true;
      for (std::size_t i = 0; i < results_.size(); ++i) {
        if (i >= waiting_ || std::find(in_slot_.begin(), in_slot_.end(), i) != in_slot_.end())
          results_[i].end = Generated::End::asked;
      }
    } else if (static_cast<std::int64_t>(result.tokens.size()) >= options_.max_tokens) {
      end(Generated::End::max_tokens);
    } else if (engine_.length(slot) >= engine_.cache()) {
      end(Generated::End::cache_full);
    } else {
      next_.push_back({slot, token});
    }
    return {};
  }

  Engine& engine_;
  std::span<const std::vector<std::int32_t>> prompts_;
  const GenerateOptions& options_;
  const OnToken& on_token_;
  Sampler sampler_;
  std::vector<Generated> results_;
  std::vector<std::optional<std::size_t>> in_slot_;  // per slot: its sequence
  std::vector<Engine::Next> next_;
  std::vector<float> without_stop_;
  std::size_t waiting_ = 0;  // the first prompt that has had no slot yet
  bool asked_to_end_ = false;
};

}  // namespace

const char* name_of(Generated::End end) {
  switch (end) {
    case Generated::End::stop: return "stop";
    case Generated::End::max_tokens: return "max_tokens";
    case Generated::End::cache_full: return "cache_full";
    case Generated::End::asked: return "asked";
  }
  return "?";
}

Result<std::vector<Generated>> generate(Engine& engine, std::span<const std::vector<std::int32_t>> prompts,
                                        const GenerateOptions& options, const OnToken& on_token) {
  TRY(check(options.sampling));
  if (options.max_tokens < 0)
    return error(ErrorKind::invalid, "max_tokens is {}, must not be negative", options.max_tokens);
  if (options.max_tokens == 0) return std::vector<Generated>(prompts.size());
  return Generation(engine, prompts, options, on_token).run();
}

}  // namespace systole
