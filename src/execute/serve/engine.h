#pragma once
// The engine: prefill and decode of a language model over one cache with a slot per sequence, on any Device. It knows
// tokens and logits, neither text nor sampling. Sequences come and go in their slots independently of each other. A
// model with an encoder reads the prompt there; its sequence is the answer, which begins with a token of the model's.
//
//   auto engine = TRY(Engine::create(model, device, {.slots = 2}));
//   TRY(load_parameters(engine->executor(), checkpoint));      // or initialize()
//   TRY(engine->prefill(0, prompt));                           // logits(0): of the token after the prompt
//   TRY(engine->decode({{0, token}}));                         // logits(0): of the token after that
//
// Thread safety: one thread at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "describe/graph/memory.h"
#include "describe/models/model.h"
#include "execute/runtime/executor.h"

namespace systole {

struct EngineOptions {
  std::int64_t slots = 1;  // sequences at a time
  std::int64_t cache = 0;  // positions per slot, of the prompt where that is encoded; 0: the model's context
  std::vector<std::int64_t>
      buckets;  // prefill lengths, ascending; empty: 16, 64, 256, … below `cache`. `cache` is always one
  DType parameter = DType::f32;  // type that the parameters are kept in
};

// The Program that an engine runs, without a device: for planning. Errors: Failure as the model's graphs.
Program engine_program(const Model& model, const EngineOptions& options, const Target& target,
                       const WorkspaceOf& workspace_of);

class Engine {
 public:
  struct Next {
    std::int64_t slot;
    std::int32_t token;
  };

  // Plans, compiles and allocates; parameters are zero until written. The device must outlive the engine, the model
  // need not. Errors: unsupported (the model generates nothing; an op or type the device cannot run), invalid
  // (options), does_not_fit.
  static Result<std::unique_ptr<Engine>> create(const Model& model, Device& device, const EngineOptions& options);

  std::int64_t slots() const { return static_cast<std::int64_t>(positions_.size()); }
  // Tokens that a slot may hold.
  std::int64_t cache() const { return target_ > 0 ? target_ : cache_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  // Tokens that the slot holds; of an answer its beginning counts.
  std::int64_t length(std::int64_t slot) const { return positions_.at(static_cast<std::size_t>(slot)); }
  // f32[vocab] for the token after the last of a slot, until the next call that gives this slot logits.
  std::span<const float> logits(std::int64_t slot) const;

  // Starts a sequence in a slot, whatever it held. Errors: invalid when `tokens` is empty, longer than the cache or
  // names a token outside the vocabulary; those of the device.
  Status prefill(std::int64_t slot, std::span<const std::int32_t> tokens);
  // Appends one token to each of the slots given, the others stay. Errors: invalid when a slot is full or given twice,
  // or a token is outside the vocabulary; those of the device.
  Status decode(std::span<const Next> next);

  Executor& executor() { return *executor_; }
  const Program& program() const { return *program_; }

 private:
  Engine() = default;
  Status check_token(std::int32_t token) const;
  Status write(const std::string& name, std::span<const std::int32_t> numbers);
  Status clear_caches();

  std::unique_ptr<const Program> program_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::int64_t> buckets_;
  std::int64_t cache_ = 0, vocabulary_ = 0;
  std::int64_t target_ = 0;  // longest answer of a model that encodes its prompts; 0: one that goes on from them
  std::vector<std::int64_t> positions_;  // per slot: tokens that it holds
  std::vector<float> logits_;            // [slots, vocab]
  std::vector<float> fresh_;             // [slots, vocab], as decode gives them
  std::vector<std::int32_t> tokens_, at_;
};

}  // namespace systole
