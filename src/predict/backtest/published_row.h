#pragma once
// A published measurement: a model, its layout on a machine, and the time of a step. A table of them is CSV with a
// header (data/validation/README.md has the meaning of each column); unknown columns are allowed. Rows are only parsed
// here; row_job.h turns them into jobs.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole::backtest {

struct PublishedRow {
  std::string id, source;  // source: column source_group
  Where where;             // in its file

  // The machine.
  std::string accelerator, network, framework;
  std::optional<std::int64_t> chips, chips_per_node, slices;

  // The model.
  std::string model, mlp_type, attention_variant;
  std::optional<std::int64_t> layers, width, heads, kv_heads, head, mlp, vocabulary, sequence_length;
  std::optional<std::int64_t> experts, top_k, expert_mlp;
  bool tied = false;

  // How it was trained.
  std::optional<std::int64_t> batch, grad_accum;
  std::optional<double> microbatch;  // rows of a data-parallel rank; below 1 if a row is split
  std::string recompute, dtype, optimizer, attention;

  // The layout.
  std::optional<std::int64_t> dp, fsdp, tp, pp, cp, ep, chunks, zero_stage;  // chunks: per stage (vpp)
  bool chunks_untold = false;  // interleaved, with an unknown number of chunks
  std::optional<bool> sequence_parallel;

  // What was measured.
  std::optional<double> step_seconds, memory_gib, mfu;  // mfu: column mfu_norm_bf16
  bool crashed = false;                                 // ran out of memory, or failed for another reason

  std::string quality_flag, notes;
};

// The columns that a table must have.
std::span<const std::string_view> published_columns();

// Errors: invalid, all at once, each with its place: what CsvTable::read refuses, missing columns, a row without an id,
// a repeated id, a bad number.
Result<std::vector<PublishedRow>> read_published(std::string text, std::string_view file);

}  // namespace systole::backtest
