#pragma once
// A measurement that somebody published: a model, how it lay on which machine, and how long a step took. A table of
// them is CSV with a header (data/validation/README.md says what each column means); columns that are not known are
// fine. Here a row is typed and nothing more: what it means for a Program is row_job.h's matter.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole::backtest {

struct PublishedRow {
  std::string id, source;  // source_group
  Where where;             // in its file

  // The machine.
  std::string accelerator, network, framework;
  std::optional<std::int64_t> chips, chips_per_node, slices;

  // The model.
  std::string model, mlp_type, attention_variant;
  std::optional<std::int64_t> layers, width, heads, kv_heads, head, mlp, vocabulary, seq;
  std::optional<std::int64_t> experts, top_k, expert_mlp;
  bool tied = false;

  // How it was trained.
  std::optional<std::int64_t> batch, grad_accum;
  std::optional<double> microbatch;  // rows of a data-parallel rank; below 1 where a row is cut
  std::string recompute, dtype, optimizer, attention;

  // How it lay.
  std::optional<std::int64_t> dp, fsdp, tp, pp, cp, ep, chunks, zero_stage;  // chunks: of a stage, vpp
  bool chunks_untold = false;                                                // interleaved, in how many is not said
  std::optional<bool> sequence_parallel;

  // What was measured.
  std::optional<double> step_seconds, memory_gib, mfu;  // mfu: mfu_norm_bf16
  bool crashed = false;                                 // ran out of memory, or of something else

  std::string quality_flag, notes;
};

// The columns that a table must have.
std::span<const std::string_view> published_columns();

// Errors: invalid, all at once, each with its place: what CsvTable::read refuses, columns that are missing, a row
// without an id, an id that comes twice, a number that is none.
Result<std::vector<PublishedRow>> read_published(std::string text, std::string_view file);

}  // namespace systole::backtest
