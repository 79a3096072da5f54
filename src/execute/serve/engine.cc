#include "execute/serve/engine.h"

#include <algorithm>

#include "describe/graph/partition/serving.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

EngineOptions completed(const Model& model, EngineOptions options) {
  if (options.cache == 0) options.cache = model.context();
  if (options.slots < 1) fail(error(ErrorKind::invalid, "{} slots, at least 1 is needed", options.slots));
  if (options.buckets.empty()) {
    for (std::int64_t bucket = 16; bucket < options.cache; bucket *= 4) options.buckets.push_back(bucket);
  }
  std::sort(options.buckets.begin(), options.buckets.end());
  if (options.buckets.empty() || options.buckets.back() != options.cache) options.buckets.push_back(options.cache);
  return options;
}

std::string prefill_name(std::int64_t bucket) { return fmt::format("prefill.{}", bucket); }

}  // namespace

Program engine_program(const Model& model, const EngineOptions& asked, const Target& target,
                       const WorkspaceOf& workspace_of) {
  const EngineOptions options = completed(model, asked);
  ServingGraphs graphs;
  for (const std::int64_t bucket : options.buckets)
    graphs.prefill.emplace_back(bucket, model.prefill(options.slots, bucket, options.cache));
  graphs.decode = model.decode(options.slots, options.cache);
  return serving_program("generate", graphs, Mesh{}, options.parameter, target, workspace_of);
}

Result<std::unique_ptr<Engine>> Engine::create(const Model& model, Device& device, const EngineOptions& asked) {
  std::unique_ptr<Engine> engine(new Engine);  // the constructor is private
  try {
    const EngineOptions options = completed(model, asked);
    const auto workspace_of = [&](const Graph& graph, const GraphNode& node) { return device.workspace(graph, node); };
    engine->program_ = std::make_unique<const Program>(engine_program(model, options, device.target(), workspace_of));
    engine->buckets_ = options.buckets;
    engine->cache_ = options.cache;
    engine->vocabulary_ = model.vocabulary();
    engine->target_ = model.target_context();
    engine->positions_.assign(static_cast<std::size_t>(options.slots), 0);
  } catch (const Failure& failure) { return failure.error(); }
  const auto slots = static_cast<std::size_t>(engine->slots());
  engine->logits_.resize(slots * static_cast<std::size_t>(engine->vocabulary_));
  engine->fresh_ = engine->logits_;
  engine->at_.resize(slots);
  engine->tokens_.resize(std::max(slots, static_cast<std::size_t>(engine->cache_)));
  engine->executor_ = TRY(Executor::create(*engine->program_, device));
  if (!device.host_sees_memory()) TRY(engine->clear_caches());
  return engine;
}

// As they are in a new arena.
Status Engine::clear_caches() {
  for (std::size_t v = 0; v < program_->values.size(); ++v) {
    const ProgramValue& value = program_->values[v];
    if (value.residence != Residence::cache) continue;
    const std::vector<std::byte> zeros(static_cast<std::size_t>(value.type.bytes().count()));
    for (int slot = 0; slot < value.slots; ++slot) TRY(executor_->write(static_cast<int>(v), slot, zeros));
  }
  return {};
}

std::span<const float> Engine::logits(std::int64_t slot) const {
  const auto size = static_cast<std::size_t>(vocabulary_);
  return std::span(logits_).subspan(static_cast<std::size_t>(slot) * size, size);
}

Status Engine::check_token(std::int32_t token) const {
  if (token >= 0 && token < vocabulary_) return {};
  return error(ErrorKind::invalid, "token {} is outside the model's vocabulary of {}", token, vocabulary_)
      .hinted("use the tokenizer that the model was trained with");
}

Status Engine::write(const std::string& name, std::span<const std::int32_t> numbers) {
  return executor_->write(program_->value_named(name), 0, std::as_bytes(numbers));
}

Status Engine::prefill(std::int64_t slot, std::span<const std::int32_t> tokens) {
  CHECK(slot >= 0 && slot < slots(), "slot {} of {}", slot, slots());
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (length == 0)
    return error(ErrorKind::invalid, "a prompt without tokens")
        .hinted("begin with the tokenizer's token for the beginning of a document");
  if (length > cache_)
    return error(ErrorKind::invalid, "a prompt of {} for a cache of {}", counted(length, "token"), cache_)
        .hinted("shorten the prompt, or train with a longer model.context");
  for (const std::int32_t token : tokens) TRY(check_token(token));
  const std::int64_t bucket = *std::lower_bound(buckets_.begin(), buckets_.end(), length);
  const std::string name = prefill_name(bucket);
  std::fill_n(std::copy(tokens.begin(), tokens.end(), tokens_.begin()), bucket - length, 0);
  const std::int32_t length_and_slot[] = {static_cast<std::int32_t>(length), static_cast<std::int32_t>(slot)};
  TRY(write(name + "/tokens", std::span(tokens_).first(static_cast<std::size_t>(bucket))));
  TRY(write(name + "/length", std::span(length_and_slot).first(1)));
  TRY(write(name + "/slot", std::span(length_and_slot).last(1)));
  TRY(executor_->run(program_->schedule_named(name)));
  const auto size = static_cast<std::size_t>(vocabulary_);
  TRY(executor_->read(program_->value_named(name + "/logits"), 0,
                      std::as_writable_bytes(std::span(logits_).subspan(static_cast<std::size_t>(slot) * size, size))));
  positions_[static_cast<std::size_t>(slot)] = target_ > 0 ? 1 : length;
  return {};
}

Status Engine::decode(std::span<const Next> next) {
  std::fill(tokens_.begin(), tokens_.end(), 0);
  std::fill(at_.begin(), at_.end(), -1);
  for (const auto& [slot, token] : next) {
    CHECK(slot >= 0 && slot < slots(), "slot {} of {}", slot, slots());
    const auto s = static_cast<std::size_t>(slot);
    TRY(check_token(token));
    if (at_[s] >= 0) return error(ErrorKind::invalid, "slot {} is given two tokens at once", slot);
    if (positions_[s] == 0)
      return error(ErrorKind::invalid, "slot {} holds no sequence", slot).hinted("prefill it first");
    if (positions_[s] >= cache())
      return error(ErrorKind::invalid, "slot {} is full: its cache holds {} tokens", slot, cache());
    tokens_[s] = token;
    at_[s] = static_cast<std::int32_t>(positions_[s]);
  }
  TRY(write("decode/tokens", std::span(tokens_).first(at_.size())));
  TRY(write("decode/position", at_));
  TRY(executor_->run(program_->schedule_named("decode")));
  TRY(executor_->read(program_->value_named("decode/logits"), 0, std::as_writable_bytes(std::span(fresh_))));
  for (const Next& entry : next) {
    const auto begin = static_cast<std::ptrdiff_t>(entry.slot * vocabulary_);
    std::copy_n(fresh_.begin() + begin, vocabulary_, logits_.begin() + begin);
    ++positions_[static_cast<std::size_t>(entry.slot)];
  }
  return {};
}

}  // namespace systole
