#include "execute/serve/engine.h"

#include <algorithm>
#include <numeric>

#include "describe/partition/serving_layouts.h"
#include "describe/partition/spmd.h"
#include "execute/serve/rank_steps.h"
#include "ground/base/counted.h"
#include "ground/tensor/int4.h"

namespace systole {

Result<std::unique_ptr<Engine>> Engine::create(const Model& model, Device& device, const EngineOptions& asked,
                                               std::int64_t part) {
  std::unique_ptr<Engine> engine(new Engine);  // the constructor is private
  try {
    const EngineOptions options = completed(model, asked);
    const auto workspace_of = [&](const Graph& graph, const GraphNode& node) { return device.workspace(graph, node); };
    const ServingGraphs graphs = serving_graphs(model, options);
    if (is_packed_type(options.parameter)) {
      for (const Int8Weight& weight : int8_weights_of(graphs, options.parameter))
        engine->int8_weights_.push_back(part_of_weight(weight, serving_mesh(options.parts)));
    }
    engine->program_ = std::make_unique<const Program>(engine_program(graphs, options, device.target(), workspace_of));
    engine->options_ = options;
    engine->limits_ = serving_limits(model, options, 0);
    engine->vocabulary_ = model.vocabulary();
    engine->target_ = model.target_context();
    engine->has_types_ = model.task() == Task::masked;
    engine->hidden_size_ = options.hidden ? model.hidden_size() : 0;
    engine->positions_.assign(static_cast<std::size_t>(options.slots), 0);
    engine->entries_ = paged_cache(options).entries;
  } catch (const Failure& failure) { return failure.error(); }
  const auto slots = static_cast<std::size_t>(engine->slots());
  const std::size_t rows = std::max(slots, static_cast<std::size_t>(engine->options_.batches.back()));
  engine->logits_.resize(slots * static_cast<std::size_t>(engine->vocabulary_));
  engine->fresh_.resize(rows * static_cast<std::size_t>(engine->vocabulary_));
  engine->at_.resize(rows);
  engine->adapters_.resize(slots);
  engine->adapter_of_row_.resize(rows);
  engine->tokens_.resize(std::max(rows, static_cast<std::size_t>(engine->options_.buckets.back())));
  engine->tables_.resize(slots * static_cast<std::size_t>(engine->entries_), -1);
  if (static_cast<std::int64_t>(engine->tables_.size()) <= engine->options_.pages)
    std::iota(engine->tables_.begin(), engine->tables_.end(), 0);
  engine->rows_.resize(rows * static_cast<std::size_t>(engine->entries_));
  engine->executor_ = TRY(Executor::create(*engine->program_, device));
  if (!device.host_sees_memory()) TRY(engine->clear_caches());
  if (const auto place = engine->program_->find_value(coordinate_name(kServingAxis)))
    TRY(engine->executor_->write(*place, 0, std::as_bytes(std::span(&part, 1))));
  return engine;
}

// Zeros the caches, as in a new arena.
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

std::span<const float> Engine::logits_after(std::size_t i) const {
  const auto size = static_cast<std::size_t>(vocabulary_);
  return std::span(fresh_).subspan(i * size, size);
}

std::span<const std::int32_t> Engine::table_of(std::int64_t slot) const {
  const auto size = static_cast<std::size_t>(entries_);
  return std::span(tables_).subspan(static_cast<std::size_t>(slot) * size, size);
}

void Engine::set_table(std::int64_t slot, std::span<const std::int32_t> pages) {
  CHECK(!encodes() && static_cast<std::int64_t>(pages.size()) <= entries_, "{} pages for slot {}", pages.size(), slot);
  const auto table =
      std::span(tables_).subspan(static_cast<std::size_t>(slot * entries_), static_cast<std::size_t>(entries_));
  std::ranges::fill(std::ranges::copy(pages, table.begin()).out, table.end(), -1);
}

void Engine::set_adapter(std::int64_t slot, std::int64_t adapter) {
  CHECK(adapter >= 0 && adapter <= options_.adapters.count, "adapter {} of {}", adapter, options_.adapters.count);
  adapters_.at(static_cast<std::size_t>(slot)) = static_cast<std::int32_t>(adapter);
}

Status Engine::check_token(std::int32_t token) const {
  if (token >= 0 && token < vocabulary_) return {};
  return error(ErrorKind::invalid, "token {} is outside the model's vocabulary of {}", token, vocabulary_)
      .hinted("use the tokenizer that the model was trained with");
}

Status Engine::write(const std::string& name, std::span<const std::int32_t> numbers) {
  return executor_->write(program_->value_named(name), 0, std::as_bytes(numbers));
}

Status Engine::run(const std::string& function) {
  const Schedule& schedule = program_->schedule_named(function);
  return steps_ == nullptr ? executor_->run(schedule) : steps_->run(*executor_, schedule);
}

Status Engine::read_logits(const std::string& function, std::int64_t slot) {
  const auto size = static_cast<std::size_t>(vocabulary_);
  const auto to = std::span(logits_).subspan(static_cast<std::size_t>(slot) * size, size);
  return executor_->read(program_->value_named(function + "/logits"), 0, std::as_writable_bytes(to));
}

Status Engine::check_prompt(std::span<const std::int32_t> tokens) const {
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (length == 0)
    return error(ErrorKind::invalid, "a prompt without tokens")
        .hinted("begin with the tokenizer's token for the beginning of a document");
  if (length > options_.cache)
    return error(ErrorKind::invalid, "a prompt of {} for a cache of {}", counted(length, "token"), options_.cache)
        .coded(ErrorCode::context_length_exceeded)
        .hinted("shorten the prompt, or train with a longer model.context");
  for (const std::int32_t token : tokens) TRY(check_token(token));
  return {};
}

Status Engine::prefill(std::int64_t slot, std::span<const std::int32_t> tokens) {
  CHECK(slot >= 0 && slot < slots(), "slot {} of {}", slot, slots());
  TRY(check_prompt(tokens));
  if (encodes()) return encode_prompt(slot, tokens);
  begin(slot, 0);
  return extend(slot, tokens);
}

Status Engine::encode_prompt(std::int64_t slot, std::span<const std::int32_t> tokens) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  const std::int64_t bucket = bucket_of(options_.buckets, length);
  const std::string name = prefill_name(bucket);
  std::fill_n(std::copy(tokens.begin(), tokens.end(), tokens_.begin()), bucket - length, 0);
  const std::int32_t length_and_slot[] = {static_cast<std::int32_t>(length), static_cast<std::int32_t>(slot)};
  TRY(write(name + "/tokens", std::span(tokens_).first(static_cast<std::size_t>(bucket))));
  TRY(write(name + "/length", std::span(length_and_slot).first(1)));
  TRY(write(name + "/slot", std::span(length_and_slot).last(1)));
  TRY(run(name));
  TRY(read_logits(name, slot));
  positions_[static_cast<std::size_t>(slot)] = 1;
  return {};
}

std::int64_t Engine::hidden_rows(std::int64_t length) const {
  return hidden_size_ == 0 ? 0 : texts_at_once(bucket_of(options_.texts, length));
}

// Padding has segment 0: no token of a text sees it.
Result<std::vector<std::span<const float>>> Engine::hidden(std::span<const std::span<const std::int32_t>> texts) {
  std::size_t longest = 0;
  for (const std::span<const std::int32_t> text : texts) {
    TRY(check_prompt(text));
    longest = std::max(longest, text.size());
  }
  const std::int64_t bucket = bucket_of(options_.texts, static_cast<std::int64_t>(longest)),
                     rows = texts_at_once(bucket);
  CHECK(hidden_size_ > 0 && static_cast<std::int64_t>(texts.size()) <= rows, "{} texts at once of {}", texts.size(),
        rows);
  const auto width = static_cast<std::size_t>(bucket), all = width * static_cast<std::size_t>(rows);
  std::vector<std::int32_t> tokens(all), segments(all), positions(all);
  for (std::size_t row = 0; row < texts.size(); ++row) {
    for (std::size_t i = 0; i < texts[row].size(); ++i) {
      tokens[row * width + i] = texts[row][i];
      segments[row * width + i] = 1;
      positions[row * width + i] = static_cast<std::int32_t>(i);
    }
  }
  const std::string name = hidden_name(bucket);
  TRY(write(name + "/tokens", tokens));
  TRY(write(name + "/segments", segments));
  TRY(write(name + "/positions", positions));
  if (has_types_) TRY(write(name + "/types", std::vector<std::int32_t>(all)));  // of one text: all of the first
  TRY(run(name));
  const auto size = static_cast<std::size_t>(hidden_size_);
  hidden_.resize(all * size);
  TRY(executor_->read(program_->value_named(name + "/hidden"), 0, std::as_writable_bytes(std::span(hidden_))));
  std::vector<std::span<const float>> states;
  for (std::size_t row = 0; row < texts.size(); ++row)
    states.push_back(std::span<const float>(hidden_).subspan(row * width * size, texts[row].size() * size));
  return states;
}

Status Engine::check_room(std::int64_t slot, std::span<const std::int32_t> tokens) const {
  CHECK(slot >= 0 && slot < slots() && !encodes(), "slot {} of {}", slot, slots());
  TRY(check_prompt(tokens));
  const std::int64_t room = options_.cache - length(slot);
  if (static_cast<std::int64_t>(tokens.size()) <= room) return {};
  return error(ErrorKind::invalid, "{} for slot {}, which has room for {}",
               counted(static_cast<std::int64_t>(tokens.size()), "token"), slot, room);
}

Status Engine::extend(std::int64_t slot, std::span<const std::int32_t> tokens) {
  TRY(check_room(slot, tokens));
  while (!tokens.empty()) {
    const std::size_t piece = std::min(tokens.size(), static_cast<std::size_t>(options_.buckets.back()));
    TRY(run_piece(slot, tokens.first(piece)));
    tokens = tokens.subspan(piece);
  }
  return {};
}

// A piece with padding up to its bucket, and its place.
Status Engine::write_piece(const std::string& name, std::int64_t slot, std::span<const std::int32_t> tokens,
                           std::int64_t bucket) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  std::fill_n(std::copy(tokens.begin(), tokens.end(), tokens_.begin()), bucket - length, 0);
  const std::int32_t start[] = {static_cast<std::int32_t>(this->length(slot))};
  TRY(write(name + "/tokens", std::span(tokens_).first(static_cast<std::size_t>(bucket))));
  TRY(write(name + "/table", table_of(slot)));
  if (has_adapters()) TRY(write(name + "/adapter", std::span(adapters_).subspan(static_cast<std::size_t>(slot), 1)));
  return write(name + "/start", start);
}

Status Engine::run_piece(std::int64_t slot, std::span<const std::int32_t> tokens) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  const std::int64_t bucket = bucket_of(options_.buckets, length);
  const std::string name = prefill_name(bucket);
  TRY(write_piece(name, slot, tokens, bucket));
  const std::int32_t last[] = {static_cast<std::int32_t>(length - 1)};
  if (bucket > 1) TRY(write(name + "/last", last));
  TRY(run(name));
  TRY(read_logits(name, slot));
  positions_[static_cast<std::size_t>(slot)] += length;
  return {};
}

Result<std::span<const float>> Engine::score(std::int64_t slot, std::span<const std::int32_t> tokens,
                                             std::span<const std::int32_t> next) {
  CHECK(options_.score && next.size() == tokens.size(), "{} labels of {} tokens", next.size(), tokens.size());
  TRY(check_room(slot, tokens));
  for (const std::int32_t token : next) {
    if (token >= 0) TRY(check_token(token));
  }
  scores_.clear();
  while (!tokens.empty()) {
    const std::size_t piece = std::min(tokens.size(), static_cast<std::size_t>(options_.buckets.back()));
    TRY(score_piece(slot, tokens.first(piece), next.first(piece)));
    tokens = tokens.subspan(piece);
    next = next.subspan(piece);
  }
  return std::span<const float>(scores_);
}

Status Engine::score_piece(std::int64_t slot, std::span<const std::int32_t> tokens,
                           std::span<const std::int32_t> next) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  const std::int64_t bucket = bucket_of(options_.buckets, length);
  const std::string name = score_name(bucket);
  TRY(write_piece(name, slot, tokens, bucket));
  std::vector<std::int32_t> labels(next.begin(), next.end());
  labels.resize(static_cast<std::size_t>(bucket), -1);
  TRY(write(name + "/labels", labels));
  TRY(run(name));
  std::vector<float> losses(static_cast<std::size_t>(bucket));
  TRY(executor_->read(program_->value_named(name + "/loss"), 0, std::as_writable_bytes(std::span(losses))));
  for (std::size_t i = 0; i < tokens.size(); ++i) scores_.push_back(-losses[i]);
  positions_[static_cast<std::size_t>(slot)] += length;
  return {};
}

Status Engine::check_next(std::span<const Next> next) const {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < next.size(); ++i) {
    const auto& [slot, token] = next[i];
    CHECK(slot >= 0 && slot < slots(), "slot {} of {}", slot, slots());
    TRY(check_token(token));
    const auto same = [slot = slot](const Next& other) { return other.slot == slot; };
    const bool goes_on = options_.drafts > 0 && i > 0 && same(next[i - 1]);
    at = goes_on ? at + 1 : length(slot);
    if (!goes_on && std::any_of(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(i), same))
      return error(ErrorKind::invalid, "slot {} is given two tokens at once", slot);
    if (length(slot) == 0)
      return error(ErrorKind::invalid, "slot {} holds no sequence", slot).hinted("prefill it first");
    if (at >= cache()) return error(ErrorKind::invalid, "slot {} is full: its cache holds {} tokens", slot, cache());
  }
  return {};
}

Status Engine::decode(std::span<const Next> next) {
  TRY(check_next(next));
  if (next.empty()) return {};
  return run_rows(next);
}

Status Engine::follow(std::int64_t slot, std::span<const std::int32_t> tokens) {
  TRY(check_room(slot, tokens));
  std::vector<Next> next;
  for (const std::int32_t token : tokens) next.push_back({slot, token});
  return run_rows(next);
}

// A step of an encoder-decoder has a row for every slot, in order; of a decoder, one for every token that is given. All
// rows of a layer write their keys and values before any attends, so a row sees those of the rows before it.
Status Engine::run_rows(std::span<const Next> next) {
  const auto count = static_cast<std::int64_t>(next.size());
  const std::int64_t rows = bucket_of(options_.batches, count);
  const auto row_of = [&](std::size_t i) { return encodes() ? next[i].slot : static_cast<std::int64_t>(i); };
  const auto first = [&](std::vector<std::int32_t>& numbers, std::int64_t n) {
    return std::span(numbers).first(static_cast<std::size_t>(n));
  };
  std::ranges::fill(first(tokens_, rows), 0);
  std::ranges::fill(first(at_, rows), -1);
  std::ranges::fill(first(rows_, rows * entries_), 0);
  std::ranges::fill(first(adapter_of_row_, rows), 0);
  for (std::size_t i = 0; i < next.size(); ++i) {
    const auto row = static_cast<std::size_t>(row_of(i));
    tokens_[row] = next[i].token;
    const bool goes_on = i > 0 && next[i - 1].slot == next[i].slot;
    adapter_of_row_[row] = adapters_[static_cast<std::size_t>(next[i].slot)];
    at_[row] = goes_on ? at_[row - 1] + 1 : static_cast<std::int32_t>(length(next[i].slot));
    std::ranges::copy(table_of(next[i].slot), rows_.begin() + static_cast<std::ptrdiff_t>(row) * entries_);
  }
  const std::string name = decode_name(rows);
  TRY(write(name + "/tokens", first(tokens_, rows)));
  TRY(write(name + (encodes() ? "/position" : "/start"), first(at_, rows)));
  if (!encodes()) TRY(write(name + "/table", first(rows_, rows * entries_)));
  if (has_adapters()) TRY(write(name + "/adapter", first(adapter_of_row_, rows)));
  TRY(run(name));
  const auto fresh = std::span(fresh_).first(static_cast<std::size_t>(rows * vocabulary_));
  TRY(executor_->read(program_->value_named(name + "/logits"), 0, std::as_writable_bytes(fresh)));
  for (std::size_t i = 0; i < next.size(); ++i) {
    std::copy_n(fresh.begin() + static_cast<std::ptrdiff_t>(row_of(i) * vocabulary_), vocabulary_,
                logits_.begin() + static_cast<std::ptrdiff_t>(next[i].slot * vocabulary_));
    ++positions_[static_cast<std::size_t>(next[i].slot)];
  }
  return {};
}

}  // namespace systole
