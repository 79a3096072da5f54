#pragma once
// The inference engine: prefill and decode of a language model on any Device, with one KV cache that has a slot per
// sequence. It works on tokens and logits, not on text or sampling. Slots are independent. An encoder-decoder model
// encodes the prompt; its sequence is the answer, which begins with the model's start token. With `hidden` it also
// gives the last hidden states of whole texts, in which no slot has a part; of a bert it gives nothing else. With
// `score` it also says how likely given tokens are.
//
//   auto engine = TRY(Engine::create(model, device, {.slots = 2}));
//   TRY(load_parameters(engine->executor(), checkpoint));      // or initialize(); with weights in int8: int8_loader.h
//   TRY(engine->prefill(0, prompt));                           // logits(0): of the token after the prompt
//   TRY(engine->decode({{0, token}}));                         // logits(0): of the token after that
//
// The cache of a decoder is a pool of pages (describe/ops/paged.cc). A step computes no more sequences than it is given,
// rounded up to a power of two, and a prompt is computed in pieces. On a device whose products have the same bits for
// any number of rows (CpuOptions::exact) so have a sequence's logits, whatever else is in a step and however its prompt
// is cut.
//
// Thread safety: one thread at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "describe/job/engine_program.h"
#include "describe/program/memory.h"
#include "execute/runtime/executor.h"

namespace systole {

class LeadingSteps;

class Engine {
 public:
  struct Next {
    std::int64_t slot;
    std::int32_t token;
  };

  // Plans, compiles and allocates; parameters are zero until written. The device must outlive the engine; the model
  // need not. With `options.parts` the engine is one rank's, whose part is `part`; the device is connected with the
  // others.
  // Errors: unsupported (the model cannot generate; an op or type that the device cannot run), invalid (options),
  // does_not_fit.
  static Result<std::unique_ptr<Engine>> create(const Model& model, Device& device, const EngineOptions& options,
                                                std::int64_t part = 0);

  std::int64_t slots() const { return static_cast<std::int64_t>(positions_.size()); }
  bool generates() const { return options_.generates; }
  // The capacity of a slot in tokens.
  std::int64_t cache() const { return target_ > 0 ? target_ : options_.cache; }
  std::int64_t longest_prompt() const { return options_.cache; }
  std::int64_t vocabulary() const { return vocabulary_; }
  // The number of tokens in the slot; an answer's start token counts.
  std::int64_t length(std::int64_t slot) const { return positions_.at(static_cast<std::size_t>(slot)); }
  // An encoder-decoder: the prompt is not part of the sequence.
  bool encodes() const { return target_ > 0; }
  // f32[vocab] for the token after the last of a slot; valid until the next call that computes logits for this slot.
  std::span<const float> logits(std::int64_t slot) const;

  // Errors: invalid if `tokens` is empty, longer than the cache, or has a token outside the vocabulary.
  // From any thread.
  Status check_prompt(std::span<const std::int32_t> tokens) const;
  // Starts a sequence in a slot and discards its old contents. Errors: those of check_prompt and of the device.
  Status prefill(std::int64_t slot, std::span<const std::int32_t> tokens);
  // Appends several tokens to a slot, as if one after the other; `prefill` is this on an empty slot.
  // Errors: invalid if `tokens` is empty, has more tokens than the slot has room for, or one outside the vocabulary;
  // those of the device. REQUIRES: not encodes().
  Status extend(std::int64_t slot, std::span<const std::int32_t> tokens);
  // The same, and gives for each token the log likelihood (natural) of the one that follows it by `next`, f32; 0 where
  // that is negative. The span is valid until the next call.
  // Errors: those of extend; invalid: a token of `next` outside the vocabulary. REQUIRES: the engine was created with
  // `score`; as many of `next` as of `tokens`.
  Result<std::span<const float>> score(std::int64_t slot, std::span<const std::int32_t> tokens,
                                       std::span<const std::int32_t> next);
  // With everything filled in.
  const EngineOptions& options() const { return options_; }
  // What a scheduler may put into a step (describe/job/engine_program.h).
  const ServingLimits& limits() const { return limits_; }
  // The pages of a slot, in order, at least for the tokens that it has and that come next. From the start, a slot has
  // pages of its own if there are so many. REQUIRES: not encodes(); pages of the cache, no more than a sequence has.
  void set_table(std::int64_t slot, std::span<const std::int32_t> pages);
  // The slot holds a sequence whose first `length` tokens are in its pages; 0: none. A shorter one than before forgets
  // its last tokens. It has no logits until more are computed. REQUIRES: not encodes().
  void begin(std::int64_t slot, std::int64_t length) { positions_.at(static_cast<std::size_t>(slot)) = length; }
  // The adapter of a slot's sequence from now on: 1 is the first of options().adapters, 0 none, as at the start.
  // REQUIRES: there is such an adapter.
  void set_adapter(std::int64_t slot, std::int64_t adapter);
  // Appends one token to each given slot; others are unchanged. An engine with drafts takes several tokens of a slot that
  // stand together, and appends them as if one after the other.
  // Errors: invalid if a slot is full or given twice, or a token is outside the vocabulary; those of the device.
  // REQUIRES: no more tokens than options().batches.back().
  Status decode(std::span<const Next> next);
  // Appends tokens to a slot as `extend` does, by rows of a decode, so that there are logits after each of them:
  // logits_after(i) of tokens[i]. Errors: those of extend. REQUIRES: not encodes(); at most as many as decode takes.
  Status follow(std::int64_t slot, std::span<const std::int32_t> tokens);
  // f32[vocab] for the token after next[i] of the last decode; valid until the next. REQUIRES: not encodes().
  std::span<const float> logits_after(std::size_t i) const;

  // Texts of this many tokens that one call of `hidden` takes; 0: the engine has no hidden states.
  // REQUIRES: 1 <= length <= longest_prompt().
  std::int64_t hidden_rows(std::int64_t length) const;
  std::int64_t hidden_size() const { return hidden_size_; }
  // Whether one call computes texts of these lengths in the same time: they are padded to one bucket.
  bool same_bucket(std::int64_t a, std::int64_t b) const {
    return bucket_of(options_.texts, a) == bucket_of(options_.texts, b);
  }
  // The last hidden states of each text's tokens, f32[tokens, hidden_size()]; valid until the next call.
  // Errors: those of check_prompt and of the device. REQUIRES: 1 … hidden_rows(of the longest) texts.
  Result<std::vector<std::span<const float>>> hidden(std::span<const std::span<const std::int32_t>> texts);

  // Has every step run by the other ranks, too, which hold the other parts of the model (rank_steps.h); it must outlive
  // the engine's calls. REQUIRES: options().parts > 1, or null: alone.
  void lead(LeadingSteps* steps) { steps_ = steps; }
  LeadingSteps* leads() const { return steps_; }

  Executor& executor() { return *executor_; }
  const Program& program() const { return *program_; }
  // With parameters of type i8 or kInt4: those that are in int8 or int4, this rank's parts; others are in f32.
  std::span<const Int8Weight> int8_weights() const { return int8_weights_; }

 private:
  Engine() = default;
  bool has_adapters() const { return options_.adapters.any(); }
  Status check_token(std::int32_t token) const;
  Status check_next(std::span<const Next> next) const;
  Status run_rows(std::span<const Next> next);
  Status write(const std::string& name, std::span<const std::int32_t> numbers);
  Status run(const std::string& function);
  Status clear_caches();
  Status encode_prompt(std::int64_t slot, std::span<const std::int32_t> tokens);
  Status check_room(std::int64_t slot, std::span<const std::int32_t> tokens) const;
  Status write_piece(const std::string& name, std::int64_t slot, std::span<const std::int32_t> tokens,
                     std::int64_t bucket);
  Status run_piece(std::int64_t slot, std::span<const std::int32_t> tokens);
  Status score_piece(std::int64_t slot, std::span<const std::int32_t> tokens, std::span<const std::int32_t> next);
  Status read_logits(const std::string& function, std::int64_t slot);
  std::span<const std::int32_t> table_of(std::int64_t slot) const;

  std::unique_ptr<const Program> program_;
  std::unique_ptr<Executor> executor_;
  LeadingSteps* steps_ = nullptr;
  std::vector<Int8Weight> int8_weights_;
  EngineOptions options_;
  ServingLimits limits_;  // that nobody waits
  std::int64_t vocabulary_ = 0;
  std::int64_t hidden_size_ = 0;         // 0: no hidden states
  bool has_types_ = false;               // hidden states are of a model with token types
  std::int64_t target_ = 0;              // encoder-decoder: longest answer; 0: decoder-only
  std::vector<std::int64_t> positions_;  // per slot: number of tokens
  std::vector<float> logits_;            // [slots, vocab]
  std::vector<float> fresh_;             // [rows, vocab], output of decode
  std::int64_t entries_ = 0;             // pages of a slot
  std::vector<std::int32_t> tables_;     // [slots, entries]
  std::vector<std::int32_t> adapters_;   // [slots]
  std::vector<std::int32_t> tokens_, at_, rows_, adapter_of_row_;
  std::vector<float> hidden_;  // [rows, bucket, hidden_size_] of the last call
  std::vector<float> scores_;  // of the last call of `score`
};

}  // namespace systole
