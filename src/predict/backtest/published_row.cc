#include "predict/backtest/published_row.h"

#include <fmt/ranges.h>

#include <map>

#include "ground/catalog/table_row.h"

namespace systole::backtest {
namespace {

struct TextColumn {
  std::string_view name;
  std::string PublishedRow::*field;
};
constexpr TextColumn kTexts[] = {
    {"id", &PublishedRow::id},
    {"source_group", &PublishedRow::source},
    {"accelerator", &PublishedRow::accelerator},
    {"network", &PublishedRow::network},
    {"framework", &PublishedRow::framework},
    {"model", &PublishedRow::model},
    {"mlp_type", &PublishedRow::mlp_type},
    {"attn_variant", &PublishedRow::attention_variant},
    {"recompute", &PublishedRow::recompute},
    {"dtype", &PublishedRow::dtype},
    {"optimizer", &PublishedRow::optimizer},
    {"attention", &PublishedRow::attention},
    {"quality_flag", &PublishedRow::quality_flag},
    {"notes", &PublishedRow::notes},
};

struct CountColumn {
  std::string_view name;
  std::optional<std::int64_t> PublishedRow::*field;
};
constexpr CountColumn kCounts[] = {
    {"num_chips", &PublishedRow::chips},
    {"chips_per_node", &PublishedRow::chips_per_node},
    {"num_slices", &PublishedRow::slices},
    {"n_layers", &PublishedRow::layers},
    {"d_model", &PublishedRow::width},
    {"n_heads", &PublishedRow::heads},
    {"n_kv_heads", &PublishedRow::kv_heads},
    {"head_dim", &PublishedRow::head},
    {"d_ff", &PublishedRow::mlp},
    {"vocab", &PublishedRow::vocabulary},
    {"seq_len", &PublishedRow::sequence_length},
    {"n_experts", &PublishedRow::experts},
    {"top_k", &PublishedRow::top_k},
    {"moe_d_ff", &PublishedRow::expert_mlp},
    {"global_batch", &PublishedRow::batch},
    {"grad_accum", &PublishedRow::grad_accum},
    {"dp", &PublishedRow::dp},
    {"fsdp", &PublishedRow::fsdp},
    {"tp", &PublishedRow::tp},
    {"pp", &PublishedRow::pp},
    {"cp", &PublishedRow::cp},
    {"ep", &PublishedRow::ep},
    {"zero_stage", &PublishedRow::zero_stage},
};

struct NumberColumn {
  std::string_view name;
  std::optional<double> PublishedRow::*field;
};
constexpr NumberColumn kNumbers[] = {
    {"micro_batch", &PublishedRow::microbatch},
    {"step_time_use_s", &PublishedRow::step_seconds},
    {"mfu_norm_bf16", &PublishedRow::mfu},
};

// Columns whose values are words as well as numbers.
constexpr std::string_view kChunks = "vpp", kMemory = "peak_mem_gib", kTied = "tied_embeddings",
                           kSequence = "sequence_parallel";

PublishedRow row_of(TableRow& from) {
  PublishedRow row;
  row.where = from.where("id");
  for (const TextColumn& column : kTexts) row.*column.field = from.string(column.name);
  for (const CountColumn& column : kCounts) row.*column.field = from.count(column.name);
  for (const NumberColumn& column : kNumbers) row.*column.field = from.number(column.name);
  row.chunks_untold = from.text(kChunks).starts_with("interleaved");
  if (!row.chunks_untold) row.chunks = from.count(kChunks);
  const std::string_view memory = from.text(kMemory);
  row.crashed = memory.starts_with("OOM") || memory.starts_with("crashed");
  if (!row.crashed) row.memory_gib = from.number(kMemory);
  row.tied = from.yes(kTied);
  if (from.has(kSequence)) row.sequence_parallel = from.yes(kSequence);
  if (row.id.empty()) from.wrong("id", error(ErrorKind::invalid, "a row without an id"));
  for (const auto field : {&PublishedRow::step_seconds, &PublishedRow::memory_gib, &PublishedRow::mfu})
    if (row.*field == 0.0) row.*field = std::nullopt;
  return row;
}

}  // namespace

std::span<const std::string_view> published_columns() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const TextColumn& column : kTexts) all.push_back(column.name);
    for (const CountColumn& column : kCounts) all.push_back(column.name);
    for (const NumberColumn& column : kNumbers) all.push_back(column.name);
    for (const std::string_view name : {kChunks, kMemory, kTied, kSequence}) all.push_back(name);
    return all;
  }();
  return names;
}

Result<std::vector<PublishedRow>> read_published(std::string text, std::string_view file) {
  const CsvTable table = TRY(CsvTable::read(std::move(text), file));
  std::vector<std::string_view> missing;
  for (const std::string_view name : published_columns())
    if (table.column(name) == CsvTable::kNoColumn) missing.push_back(name);
  if (!missing.empty()) {
    return error(ErrorKind::invalid, "missing column{}: {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "))
        .at({std::string(file), 1, 1})
        .hinted("the first row names the columns; data/validation/README.md says what each holds");
  }
  std::vector<PublishedRow> rows;
  std::vector<Error> errors;
  std::map<std::string, int> line_of;
  for (std::size_t i = 0; i < table.num_rows(); ++i) {
    TableRow from(table, i, false, errors);
    rows.push_back(row_of(from));
    const auto [first, fresh] = line_of.emplace(rows.back().id, rows.back().where.line);
    if (!fresh && !rows.back().id.empty())
      from.wrong("id", error(ErrorKind::invalid, "the id '{}' is in line {} already", rows.back().id, first->second));
  }
  TRY(first_of(std::move(errors)));
  return rows;
}

}  // namespace systole::backtest
