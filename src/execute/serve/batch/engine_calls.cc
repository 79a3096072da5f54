#include "execute/serve/batch/engine_calls.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace systole {
namespace {

void add_pieces(EngineCalls& calls, std::string (*name)(std::int64_t), const std::vector<std::int64_t>& buckets,
                std::int64_t tokens) {
  const std::int64_t longest = buckets.back(), rest = tokens % longest;
  if (tokens >= longest) calls[name(longest)] += tokens / longest;
  if (rest > 0) calls[name(bucket_of(buckets, rest))] += 1;
}

}  // namespace

// A sequence that begins in a step gets its first token there by its prompt, and decodes in the steps after it.
EngineCalls generation_calls(const EngineOptions& options, std::span<const SequenceSize> sequences) {
  EngineCalls calls;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free;  // the step from which a slot is
  for (std::int64_t slot = 0; slot < options.slots; ++slot) free.push(0);
  std::map<std::int64_t, std::int64_t> change;  // of the number of sequences that decode, by step
  for (const SequenceSize& sequence : sequences) {
    add_pieces(calls, prefill_name, options.buckets, sequence.tokens);
    const std::int64_t begin = free.top(), end = begin + std::max<std::int64_t>(sequence.answer, 1);
    free.pop();
    free.push(end);
    ++change[begin + 1];
    --change[end];
  }
  std::int64_t decoding = 0, since = 0;
  for (const auto& [step, by] : change) {
    if (decoding > 0) calls[decode_name(bucket_of(options.batches, decoding))] += step - since;
    decoding += by;
    since = step;
  }
  return calls;
}

EngineCalls hidden_calls(const EngineOptions& options, std::span<const SequenceSize> texts) {
  std::map<std::int64_t, std::int64_t> counts;  // of texts, by bucket
  for (const SequenceSize& text : texts) ++counts[bucket_of(options.texts, text.tokens)];
  EngineCalls calls;
  for (const auto& [bucket, count] : counts) {
    const std::int64_t together = texts_at_once(bucket);
    calls[hidden_name(bucket)] = (count + together - 1) / together;
  }
  return calls;
}

EngineCalls score_calls(const EngineOptions& options, std::span<const SequenceSize> inputs) {
  EngineCalls calls;
  for (const SequenceSize& input : inputs) add_pieces(calls, score_name, options.buckets, input.tokens);
  return calls;
}

}  // namespace systole
