#include "describe/job/engine_program.h"

#include <algorithm>

#include "describe/partition/serving_layouts.h"
#include "ground/base/counted.h"
#include "ground/tensor/int4.h"

namespace systole {
namespace {

constexpr std::int64_t kLongestPiece = 512;  // so long does a sequence wait for another's prompt between two tokens

bool encodes(const Model& model) { return model.target_context() > 0; }

std::int64_t pages_for(std::int64_t positions, std::int64_t size) { return (positions + size - 1) / size; }

}  // namespace

EngineOptions completed(const Model& model, EngineOptions options) {
  // A model without sequences has no context; its graphs are refused.
  if (options.cache == 0) options.cache = std::max<std::int64_t>(model.context(), 1);
  if (options.slots < 1) fail(error(ErrorKind::invalid, "{} slots, at least 1 is needed", options.slots));
  if (options.cache > std::max<std::int64_t>(model.context(), 1)) {
    fail(error(ErrorKind::invalid, "a cache of {} positions for a context of {}", options.cache, model.context()));
  }
  if (options.drafts > 0 && model.task() != Task::language) {
    fail(error(ErrorKind::unsupported, "tokens are drafted where an answer goes on from its prompt, not by a {}",
               model.family())
             .hinted("leave out --speculate"));
  }
  if (options.cache_type != DType::f32 && model.task() != Task::language) {
    fail(error(ErrorKind::unsupported, "keys and values in {}: a {} has none that are kept in pages",
               name_of(options.cache_type), model.family())
             .hinted("leave out --cache-type, or serve.cache"));
  }
  if (options.compute != DType::f32 && (options.cache_type != options.compute || is_packed_type(options.parameter))) {
    fail(error(ErrorKind::unsupported, "computing in {} with keys and values in {} and parameters in {}",
               name_of(options.compute), name_of(options.cache_type), name_of_parameter(options.parameter))
             .hinted("serve.cache: bf16 and serve.parameter: bf16"));
  }
  if (options.adapters.count > 0 && model.task() != Task::language) {
    fail(error(ErrorKind::unsupported, "adapters are served where an answer goes on from its prompt, not by a {}",
               model.family())
             .hinted("leave out --lora"));
  }
  if (options.parts > 1 && model.task() != Task::language) {
    fail(error(ErrorKind::unsupported, "several ranks hold a model that goes on from its prompt, and a {} does not",
               model.family())
             .hinted("leave out --ranks"));
  }
  if (options.hidden) {
    options.generates = options.generates && model.task() != Task::masked;
    if (options.texts.empty()) options.texts = options.buckets;
    const std::int64_t factor = options.generates ? 4 : 2;
    if (options.texts.empty()) {
      for (std::int64_t bucket = 16; bucket < options.cache; bucket *= factor) options.texts.push_back(bucket);
    }
    std::sort(options.texts.begin(), options.texts.end());
    if (options.texts.empty() || options.texts.back() != options.cache) options.texts.push_back(options.cache);
  }
  const std::int64_t longest = encodes(model) ? options.cache : std::min(options.cache, kLongestPiece);
  if (options.buckets.empty()) {
    for (std::int64_t bucket = 16; bucket < longest; bucket *= 4) options.buckets.push_back(bucket);
    options.buckets.push_back(longest);
  }
  std::sort(options.buckets.begin(), options.buckets.end());
  if (encodes(model)) {
    if (options.buckets.back() != options.cache) options.buckets.push_back(options.cache);
    options.batches = {options.slots};
    return options;
  }
  if (options.batches.empty()) {
    const std::int64_t most = std::max(options.slots, options.drafts + 1);
    for (std::int64_t batch = 1; batch < most; batch *= 2) options.batches.push_back(batch);
    options.batches.push_back(most);
  }
  const std::int64_t one = pages_for(options.cache, std::min(options.cache, kPagePositions));
  if (options.pages == 0) options.pages = options.slots * one;
  if (options.pages < one) {
    fail(error(ErrorKind::invalid, "{} for sequences of {}, which have {} each", counted(options.pages, "page"),
               counted(options.cache, "token"), one));
  }
  return options;
}

PagedCache paged_cache(const EngineOptions& options) {
  const std::int64_t size = std::min(options.cache, kPagePositions);
  return {options.pages, size, pages_for(options.cache, size), options.cache_type, options.adapters};
}

std::int64_t bucket_of(const std::vector<std::int64_t>& sizes, std::int64_t count) {
  const auto bucket = std::lower_bound(sizes.begin(), sizes.end(), count);
  CHECK(bucket != sizes.end(), "no bucket holds {}", count);
  return *bucket;
}

ServingLimits serving_limits(const Model& model, const EngineOptions& options, std::int64_t waiting) {
  const PagedCache cache = paged_cache(options);
  return {.slots = options.slots,
          .cache = options.cache,
          .waiting = waiting,
          .prefill = options.buckets.back(),
          .whole_prompts = encodes(model),
          .pages = encodes(model) ? 0 : cache.pages,
          .page = cache.size,
          .drafts = std::min(options.drafts, options.batches.back() - 1),
          .lengths = options.buckets,
          .rows = options.batches};
}

std::string prefill_name(std::int64_t tokens) { return fmt::format("prefill.{}", tokens); }
std::string decode_name(std::int64_t sequences) { return fmt::format("decode.{}", sequences); }
std::string hidden_name(std::int64_t tokens) { return fmt::format("hidden.{}", tokens); }
std::string score_name(std::int64_t tokens) { return fmt::format("score.{}", tokens); }

std::int64_t texts_at_once(std::int64_t bucket) {
  constexpr std::int64_t kTokens = 512;
  return std::max<std::int64_t>(kTokens / bucket, 1);
}

ServingGraphs serving_graphs(const Model& model, const EngineOptions& options) {
  ServingGraphs graphs;
  for (const std::int64_t bucket : options.texts) {
    const BatchShape shape{.rows = texts_at_once(bucket), .sequence_length = bucket, .target = 0, .padded = false};
    graphs.emplace_back(hidden_name(bucket), model.hidden(shape));
  }
  if (options.score) {
    for (const std::int64_t bucket : options.buckets)
      graphs.emplace_back(score_name(bucket), model.score(bucket, paged_cache(options)));
  }
  if (!options.generates) return graphs;
  if (encodes(model)) {
    for (const std::int64_t bucket : options.buckets)
      graphs.emplace_back(prefill_name(bucket), model.prefill(options.slots, bucket, options.cache));
    graphs.emplace_back(decode_name(options.slots), model.decode(options.slots, options.cache));
    return graphs;
  }
  const PagedCache cache = paged_cache(options);
  for (const std::int64_t bucket : options.buckets)
    graphs.emplace_back(prefill_name(bucket), model.step(1, bucket, cache));
  for (const std::int64_t batch : options.batches) graphs.emplace_back(decode_name(batch), model.step(batch, 1, cache));
  return graphs;
}

Program engine_program(const ServingGraphs& graphs, const EngineOptions& options, const Target& target,
                       const WorkspaceOf& workspace_of) {
  return serving_program("generate", graphs, serving_mesh(options.parts), options.parameter, options.compute, target,
                         workspace_of);
}

Program engine_program(const Model& model, const EngineOptions& options, const Target& target,
                       const WorkspaceOf& workspace_of) {
  const EngineOptions all = completed(model, options);
  return engine_program(serving_graphs(model, all), all, target, workspace_of);
}

}  // namespace systole
