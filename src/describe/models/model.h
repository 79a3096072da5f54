#pragma once
// A model: parameters, and the graphs that read them. All graphs of a model declare all its parameters, first and in
// one order, so that training, evaluation, prefill and decode bind the same tensors by name. Graphs are f32; a
// precision pass inserts the casts. No model file mentions a mesh axis: dims carry logical names (batch, seq, embed,
// heads, kv_heads, head, mlp, vocab, layer).
//
// A Model is immutable; all functions are const, pure and safe from any thread.

#include <memory>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

// The rows of one microbatch and their length (tokens; unused by regressions).
struct BatchShape {
  std::int64_t rows = 1;
  std::int64_t seq = 1;
  std::int64_t target = 0;  // of pairs: the length of their targets' rows; 0: the model's
};

// Outputs of training a mixture of experts: how often tokens chose an expert, and how many of these choices were
// dropped because it had no place left.
constexpr const char* kExpertChoices = "moe.choices";
constexpr const char* kDroppedChoices = "moe.dropped";

// What a model is trained on, hence what its graphs take besides parameters.
//   language        tokens, labels (-1: ignored), segments (0: padding), positions, each i32[batch, seq]
//   masked          tokens with some of them masked, labels (-1: not to be told), segments, positions, types (of a
//                   sentence: 0, 1, …), each i32[batch, seq]
//   pairs           tokens and segments i32[batch, seq]; target_tokens, labels and target_segments i32[batch, target]:
//                   a target sees the tokens of its own segment
//   regression      x f32[batch, inputs], y f32[batch, outputs]
//   classification  x f32[batch, inputs], labels i32[batch] (-1: ignored)
enum class Task { language, masked, pairs, regression, classification };

class Model {
 public:
  virtual ~Model() = default;
  virtual const char* family() const = 0;
  virtual Task task() const = 0;
  virtual const std::vector<Parameter>& parameters() const = 0;
  // Sizes of the vocabulary and the longest sequence; 0 where the task has none.
  virtual std::int64_t vocabulary() const { return 0; }
  virtual std::int64_t context() const { return 0; }
  // Of pairs: the longest row of targets. Then a prompt is all encoded, and what is generated has caches of this length
  // of its own; 0: a prompt and what goes on from it share one.
  virtual std::int64_t target_context() const { return 0; }

  // Takes the task's inputs and, when `training` a model with dropout, i64[] "seed", "step" and "row" (global index of
  // the first row). Output "loss" f32[]: the SUM over labels of the negative log likelihood (language, masked, pairs,
  // classification), or over rows of the squared error divided by the number of outputs (regression). The division by
  // the global count of labels (rows for regression) comes once, later. When `training` experts that may drop tokens
  // also the sums kExpertChoices and kDroppedChoices, f32[]. Errors: Failure(invalid) when shape.seq is longer than the
  // context.
  virtual Graph loss(const BatchShape& shape, bool training) const = 0;
  // The task's inputs without labels or y; output "logits" f32[batch, seq or target, vocab], "prediction" f32[batch,
  // outputs] or "logits" f32[batch, outputs].
  virtual Graph forward(const BatchShape& shape) const = 0;

  // Language models. The caches "cache.k" and "cache.v", f32[layer, slots, cache, kv_heads, head], hold the keys and
  // values of one sequence per slot; row p belongs to position p. Both functions take them and give them back changed,
  // in place. prefill: one sequence into one slot. tokens i32[1, bucket], length i32[1] (1 … bucket), slot i32[1] →
  // "logits"
  //   f32[1, vocab] after the last real token, and the caches with rows 0 … bucket - 1 of that slot written, of which
  //   those from `length` on mean nothing.
  // With a target_context "cache.k" and "cache.v" are as long as it, begin with the prompt's first target at row 0 and
  // are followed by "cache.prompt_k", "cache.prompt_v" f32[layer, slots, cache, heads, head] and "cache.length"
  // i32[slots], which prefill writes.
  // decode: one token per slot. tokens i32[slots, 1], position i32[slots] (of that token) → "logits" f32[slots, vocab],
  // and
  //   the caches with that row of each slot written. A position outside the cache (-1: an idle slot) writes nothing.
  // Errors: Failure(unsupported) from models that generate nothing; Failure(invalid) when cache < bucket or > context.
  virtual Graph prefill(std::int64_t slots, std::int64_t bucket, std::int64_t cache) const;
  virtual Graph decode(std::int64_t slots, std::int64_t cache) const;
};

// Elements of all parameters; of the trainable ones.
std::int64_t num_parameters(const Model& model);
std::int64_t num_trainable(const Model& model);

}  // namespace systole
