#pragma once
// The Program of a serving engine (describe/partition/serving.h), from a model and the size of its cache, and what the
// scheduler may put into a step. The engine runs it and the planner prices it, so that what is planned is what is served.
//
// Functions: "prefill.<tokens>", a piece of one prompt; "decode.<rows>", a token of so many sequences, or several that
// follow one another of some; "hidden.<tokens>", the last hidden states of some texts; "score.<tokens>", how likely the
// tokens of a piece are.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/models/model.h"
#include "describe/partition/builder.h"
#include "describe/partition/serving.h"
#include "describe/serving/scheduler.h"

namespace systole {

// Positions of a page of the cache; a cache of fewer has pages of its own length.
constexpr std::int64_t kPagePositions = 16;

struct EngineOptions {
  std::int64_t slots = 1;  // concurrent sequences
  std::int64_t cache = 0;  // positions per slot (for an encoder-decoder, of the prompt); 0: the model's context
  // Lengths of the pieces in which prompts are computed; a longer prompt takes several. Empty: 16, 64, 256 and 512, up
  // to `cache`. An encoder takes whole prompts, so `cache` is always one of its lengths.
  std::vector<std::int64_t> buckets = {};
  // Numbers of rows of a decode: of sequences, and with `drafts` of these, too. Empty: 1, 2, 4, … and the most there can
  // be; of an encoder-decoder always `slots` alone.
  std::vector<std::int64_t> batches = {};
  // Of a decoder's cache, of kPagePositions positions each; 0: as many as fill all slots. With fewer, slots share them.
  std::int64_t pages = 0;
  // Of the parameters; i8, kInt4 (ground/tensor/int4.h): of the matrices (describe/passes/int8_weights.h).
  DType parameter = DType::f32;
  DType compute = DType::f32;     // bf16: of a decoder with such a cache, and neither i8 nor kInt4
  DType cache_type = DType::f32;  // of keys and values; bf16: of a decoder alone
  bool hidden = false;            // computes the last hidden states of whole texts
  bool score = false;             // computes how likely given tokens are, in pieces of the lengths of `buckets`
  bool generates = true;          // false: nothing but these two, and without `score` no cache; of a bert always
  // With `hidden`: lengths of texts. `cache` is always one. Empty: `buckets` if there are any, else 16, 64, 256, …, and
  // where nothing else is computed 16, 32, 64, ….
  std::vector<std::int64_t> texts = {};
  // Guesses of the next tokens that a decode may compute beside one token of a sequence (describe/serving/scheduler.h);
  // then a decode has up to so many rows and one more. 0: none.
  std::int64_t drafts = 0;
  ServedAdapters adapters = {};  // of a decoder; sequences may name them
  // Devices that hold the model together, each a part of every layer (describe/partition/serving_layouts.h).
  std::int64_t parts = 1;
};

// The options with cache, buckets, batches and, of a decoder, pages filled in. Errors: Failure(invalid): no slots, a cache
// longer than the context, fewer pages than a sequence has; Failure(unsupported): drafts, adapters, or keys and values in
// bf16, of a model that does not continue its prompt; of several parts another model.
EngineOptions completed(const Model& model, EngineOptions options);

// REQUIRES (all): completed options.
PagedCache paged_cache(const EngineOptions& options);
// The smallest of `sizes`, which ascend, that holds `count`. REQUIRES: one does.
std::int64_t bucket_of(const std::vector<std::int64_t>& sizes, std::int64_t count);
// Without limits of what prompts take beside running sequences.
ServingLimits serving_limits(const Model& model, const EngineOptions& options, std::int64_t waiting);

std::string prefill_name(std::int64_t tokens);
std::string decode_name(std::int64_t sequences);
std::string hidden_name(std::int64_t tokens);
std::string score_name(std::int64_t tokens);

// Texts of a bucket that are computed at once: many short ones, of which each alone would leave the device idle, and few
// long ones, whose activations would be large.
std::int64_t texts_at_once(std::int64_t bucket);

// Errors (all): Failure, as the model's graphs.
ServingGraphs serving_graphs(const Model& model, const EngineOptions& options);
// Without a device. REQUIRES: serving_graphs of the completed options.
Program engine_program(const ServingGraphs& graphs, const EngineOptions& options, const Target& target,
                       const WorkspaceOf& workspace_of);
Program engine_program(const Model& model, const EngineOptions& options, const Target& target,
                       const WorkspaceOf& workspace_of);

}  // namespace systole
