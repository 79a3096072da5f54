#pragma once
// A model: parameters, and the graphs that read them. Every graph of a model declares all its parameters, first and in
// the same order, so training, evaluation, prefill and decode bind the same tensors by name. Graphs are f32; a
// precision pass inserts the casts. Model files mention no mesh axes: dims carry logical names (batch, seq, embed,
// heads, kv_heads, head, mlp, vocab, layer).
//
// A Model is immutable; all functions are const, pure and safe from any thread.

#include <memory>
#include <utility>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/ir/served_adapters.h"
#include "describe/spec/families/model_spec.h"

namespace systole {

// The shape of one microbatch: its rows, and for sequences the tokens per row; 0: the model's maximum.
struct BatchShape {
  std::int64_t rows = 1;
  std::int64_t sequence_length = 0;
  std::int64_t target = 0;  // for pairs: tokens per target row
  bool padded = false;      // some rows may be empty; for a task without labels, whose graph then takes kFilled
};

// Outputs of training a mixture of experts: the number of choices (token, expert), and of those that exceeded an
// expert's capacity and were dropped.
constexpr const char* kExpertChoices = "moe.choices";
constexpr const char* kDroppedChoices = "moe.dropped";

// A paged cache: pages of the pool, positions of a page, pages in the table of a sequence; the type of keys and values,
// f32 or bf16, to which they are rounded when they are written; and the adapters of sequences.
struct PagedCache {
  std::int64_t pages = 1, size = 16, entries = 1;
  DType dtype = DType::f32;
  ServedAdapters adapters = {};
};

class Model {
 public:
  Model(const Model&) = delete;
  virtual ~Model() = default;
  const char* family() const { return spec_.family_name(); }
  Task task() const { return spec_.task(); }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Vocabulary size and longest sequence; 0 where the task has none.
  std::int64_t vocabulary() const { return spec_.vocabulary(); }
  std::int64_t context() const { return spec_.context(); }
  // For pairs: the longest target row. The encoder then takes the whole prompt, and generated tokens have caches of
  // this length of their own. 0: a prompt and its continuation share one cache.
  std::int64_t target_context() const { return spec_.target_context(); }
  // The unit of throughput: tokens of a full-length row, or rows where a row is not a sequence.
  std::int64_t sequence_length() const { return context() == 0 ? 1 : context(); }

  // Takes the task's inputs and, when `training` a model with dropout, i64[] "seed", "step" and "row" (global index of
  // the first row). Output "loss" f32[]: the SUM of the negative log likelihood over labels (language, masked, pairs,
  // classification), or of the squared error over rows, divided by the number of outputs (regression). The division by
  // the global count of labels (of filled rows for regression) comes later, once. When `training` experts that may drop tokens,
  // also outputs the sums kExpertChoices and kDroppedChoices, f32[]. Errors: Failure(invalid) when
  // shape.sequence_length is longer than the context.
  virtual Graph loss(const BatchShape& shape, bool training) const = 0;
  // Takes the task's inputs without labels or y. Output: "logits" f32[batch, seq or target, vocab], "prediction"
  // f32[batch, outputs] or "logits" f32[batch, outputs].
  virtual Graph forward(const BatchShape& shape) const = 0;

  // The states that the head reads. Takes what `forward` takes. Output: "hidden" f32[batch, seq, embed], after the last
  // norm. Declares all parameters, those of the head too. Errors: Failure(unsupported) from models that have no rows of
  // tokens, and from encoder-decoders.
  virtual Graph hidden(const BatchShape& shape) const;
  // The size of `embed`; 0 for models without `hidden`.
  std::int64_t hidden_size() const { return task() == Task::language || task() == Task::masked ? spec_.width() : 0; }

  // For language models whose prompt and answer are one sequence: the next tokens of some sequences. The caches
  // "cache.k" and "cache.v", [layer, page, place, kv_heads, head] of the cache's type, are pools of pages
  // (describe/ops/ops.h), taken and updated in place. tokens i32[batch, tokens], table i32[batch, entries], start
  // i32[batch] (the position of the first token; -1: the entry is idle, with one token), and with several tokens last
  // i32[batch] (the index of the last that is not padding) → "logits" f32[batch, vocab] after that token. Positions
  // before `start` have been computed by earlier calls. With adapters also "adapter" i32[batch] (1 is the first; 0:
  // none), and their tensors. Errors: Failure(unsupported) from models that do not generate so; Failure(invalid): sizes
  // below 1, or tables that hold fewer positions than a step has tokens; a projection that the model lacks.
  virtual Graph step(std::int64_t batch, std::int64_t tokens, const PagedCache& cache) const;

  // How likely given tokens are in one sequence, over the same caches as `step`. tokens i32[1, tokens], table i32[1,
  // entries], start i32[1], labels i32[1, tokens] (the token that follows each; negative: none is asked about) → "loss"
  // f32[1, tokens]: the negative log likelihood of each label, natural; 0 without one. Errors: as `step`.
  virtual Graph score(std::int64_t tokens, const PagedCache& cache) const;

  // For language models with a target_context. The caches "cache.k" and "cache.v", f32[layer, slots, target, heads,
  // head], hold the keys and values of one answer per slot; row p belongs to position p. After them come
  // "cache.prompt_k", "cache.prompt_v" f32[layer, slots, cache, heads, head] and "cache.length" i32[slots]. Both
  // functions take and update the caches in place.
  // prefill: encodes one prompt into one slot and begins its answer. tokens i32[1, bucket], length i32[1] (1 … bucket),
  //   slot i32[1] → "logits" f32[1, vocab] of the answer's first token; rows from `length` on are undefined.
  // decode: one token per slot. tokens i32[slots, 1], position i32[slots] (of that token) → "logits" f32[slots, vocab],
  //   and the caches with that row of each slot written. A position outside the cache (-1: an idle slot) writes
  //   nothing.
  // Errors: Failure(unsupported) from other models; Failure(invalid) when cache < bucket or > context.
  virtual Graph prefill(std::int64_t slots, std::int64_t bucket, std::int64_t cache) const;
  virtual Graph decode(std::int64_t slots, std::int64_t cache) const;

 protected:
  // `family`: checked, with all sizes.
  Model(FamilySpec family, std::vector<Parameter> parameters)
      : spec_{{}, {}, std::move(family)}, parameters_(std::move(parameters)) {}

  const ModelSpec spec_;
  const std::vector<Parameter> parameters_;
};

// Number of elements of all parameters, and of the trainable ones.
std::int64_t num_parameters(const Model& model);
std::int64_t num_trainable(const Model& model);

}  // namespace systole
