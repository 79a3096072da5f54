#include "operate/run/built_data.h"

#include <algorithm>

#include "describe/lengths/bucket_edges.h"
#include "execute/data/file_patterns.h"
#include "ground/base/counted.h"
#include "ground/base/document.h"
#include "ground/base/files.h"

namespace systole {
namespace {

// Names and sizes of the workload's files, as a manifest's sources have them. Nothing: one is missing.
std::optional<NamedSizes> files_of(const Workload& workload) {
  const Result<std::unique_ptr<Store>> root = open_posix_store("/");
  if (!root.ok()) return std::nullopt;
  NamedSizes files;
  for (const TextSpec* text : {&workload.data.train, &workload.data.held_out}) {
    std::vector<std::string> below;
    for (const std::string& pattern : text->files) {
      const Result<std::string> path = absolute_path(pattern);
      if (!path.ok()) return std::nullopt;
      below.push_back(path->substr(1));
    }
    if (below.empty()) continue;
    const Result<std::vector<std::string>> names = expand_files(**root, below, "/");
    if (!names.ok()) return std::nullopt;
    for (const std::string& name : *names) {
      const Result<Bytes> size = (*root)->size(name);
      if (!size.ok()) return std::nullopt;
      files.emplace_back("/" + name, *size);
    }
  }
  return files;
}

// REQUIRES: `files` are sorted.
bool is_built_of(const TokensManifest& manifest, const NamedSizes& files) {
  if (manifest.sources.size() != files.size()) return false;
  NamedSizes had;
  for (const SourceFile& source : manifest.sources) had.emplace_back(source.path, source.size);
  std::ranges::sort(had);
  return had == files;
}

std::int64_t row_length(const Workload& workload) { return workload.model.context() + workload.model.target_context(); }
PackingPolicy policy_of(const Workload& workload) {
  return workload.data.packing ? PackingPolicy::packed : PackingPolicy::padded;
}

}  // namespace

Result<BuiltData> find_built_data(const Workload& workload, const WorkloadSource& source) {
  if (!workload.data.mixture.sources.empty()) {
    return source.placed(error(ErrorKind::unsupported, "the lengths of a mixture are those of its sources")
                             .hinted("a workload with the files of one source as data.train"),
                         "data.mixture.sources");
  }
  BuiltData built;
  const std::string key = TRY(dataset_key_of(workload, source));
  Result<std::unique_ptr<Store>> folder = open_posix_store(workload.data.folder);
  if (!folder.ok()) return error(ErrorKind::not_found, "there is no data in '{}'", workload.data.folder);
  built.folder = *std::move(folder);
  built.manifest = TRY(read_tokens_manifest(*built.folder, key));
  return built;
}

std::optional<BuiltData> find_like_data(const Workload& workload, NamedSizes files) {
  Result<std::unique_ptr<Store>> folder = open_posix_store(workload.data.folder);
  if (!folder.ok()) return std::nullopt;
  const Result<std::vector<std::string>> keys = list_datasets(**folder);
  if (!keys.ok()) return std::nullopt;
  std::ranges::sort(files);
  const bool pairs = workload.model.task() == Task::pairs;
  std::optional<TokensManifest> found;
  for (const std::string& key : *keys) {
    Result<TokensManifest> manifest = read_tokens_manifest(**folder, key);
    if (!manifest.ok() || (manifest->use() == TokenizerUse::pairs) != pairs || !is_built_of(*manifest, files)) continue;
    const Result<bool> exists = (*folder)->exists(packing_path(key, false, row_length(workload), policy_of(workload)));
    const bool has_table = exists.ok() && *exists;
    if (!found || has_table) found = *std::move(manifest);
    if (has_table) break;
  }
  if (!found) return std::nullopt;
  return BuiltData{*std::move(folder), *std::move(found)};
}

std::optional<BuiltData> find_like_data(const Workload& workload) {
  if (workload.data.kind != DataSpec::Kind::text) return std::nullopt;
  std::optional<NamedSizes> files = files_of(workload);
  if (!files || files->empty()) return std::nullopt;
  return find_like_data(workload, *std::move(files));
}

double EpochRows::padding() const { return padding_share(tokens, rows * (length + target_length)); }

EpochRows rows_of(const Workload& workload, const Packing& packing) {
  return {.rows = packing.rows(),
          .length = workload.model.context(),
          .target_length = workload.model.target_context(),
          .tokens = packing.tokens,
          .packed = packing.policy == PackingPolicy::packed};
}

Result<EpochRows> rows_of(const Workload& workload, const BuiltData& data) {
  EpochRows all{.length = workload.model.context(),
                .target_length = workload.model.target_context(),
                .tokens = data.manifest.train.tokens,
                .packed = workload.data.packing && workload.model.target_context() == 0};
  if (all.target_length > 0) {
    all.rows = data.manifest.train.documents;
    return all;
  }
  const Result<Packing> table =
      read_packing(*data.folder, data.manifest, false, row_length(workload), policy_of(workload));
  if (table.ok()) return rows_of(workload, *table);
  if (table.error().kind != ErrorKind::not_found) return table.error();
  const DatasetLengths lengths = TRY(dataset_lengths(*data.folder, data.manifest, false, all.length));
  all.rows = all.packed ? lengths.packed_rows : lengths.documents.in_pieces(all.length).count();
  return all;
}

std::string to_string(const EpochRows& rows) {
  std::string length = counted(rows.length, "token");
  if (rows.target_length > 0)
    length = fmt::format("{} + {}", with_commas(rows.length), counted(rows.target_length, "token"));
  return fmt::format("an epoch is {} of {}, {}: {:.1f}% is padding", counted(rows.rows, "row"), length,
                     rows.packed              ? "packed"
                     : rows.target_length > 0 ? "a pair in each"
                                              : "one text in each",
                     100 * rows.padding());
}

Node to_node(const EpochRows& rows) {
  return Node::map({{"rows", rows.rows},
                    {"positions", rows.rows * (rows.length + rows.target_length)},
                    {"tokens", rows.tokens},
                    {"packed", rows.packed},
                    {"padding_share", rows.padding()}});
}

std::optional<MeasuredRows> measured_rows(const Workload& workload) {
  const std::optional<BuiltData> data = find_like_data(workload);
  if (!data) return std::nullopt;
  const Result<EpochRows> rows = rows_of(workload, *data);
  if (!rows.ok()) return std::nullopt;
  MeasuredRows measured{.padding = rows->padding()};
  if (workload.model.task() != Task::pairs) return measured;
  const Result<DatasetLengths> lengths =
      dataset_lengths(*data->folder, data->manifest, false, workload.model.context());
  if (!lengths.ok()) return std::nullopt;
  measured.most = lengths->documents.quantile(0.99);
  measured.most_of_targets = lengths->targets->quantile(0.99);
  return measured;
}

}  // namespace systole
