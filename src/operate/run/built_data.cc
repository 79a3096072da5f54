#include "operate/run/built_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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
    const Result<bool> exists =
        (*folder)->exists(packing_path(key, false, row_length(workload), packing_rule(workload.data)));
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

std::int64_t EpochRows::positions() const {
  if (buckets.empty()) return rows * (length + target_length);
  std::int64_t positions = 0;
  for (const Bucket& bucket : buckets) positions += bucket.positions();
  return positions;
}

std::int64_t EpochRows::step_rows() const {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(rows) / std::max(1.0, steps)));
}

double EpochRows::padding() const { return padding_share(tokens, positions()); }

std::int64_t steps_of(const Workload& workload, const Bucket& bucket) {
  const std::int64_t each = rows_of_bucket(workload.train.batch, workload.model.context(), bucket.edge);
  return steps_of_bucket(bucket.rows, each, workload.data.drop_remainder);
}

namespace {

void count_steps(const Workload& workload, EpochRows& rows) {
  rows.steps = 0;
  for (const Bucket& bucket : rows.buckets) rows.steps += static_cast<double>(steps_of(workload, bucket));
  if (rows.buckets.empty())
    rows.steps = static_cast<double>(rows.rows) / static_cast<double>(std::max<std::int64_t>(1, workload.train.batch));
}

void note_unused(const Workload& workload, EpochRows& rows) {
  if (!workload.data.buckets) return;
  for (const std::int64_t edge : workload.data.buckets->edges)
    if (std::ranges::find(rows.buckets, edge, &Bucket::edge) == rows.buckets.end()) rows.unused.push_back(edge);
}

}  // namespace

EpochRows rows_of(const Workload& workload, const Packing& packing) {
  EpochRows all{.rows = packing.rows(),
                .length = workload.model.context(),
                .target_length = workload.model.target_context(),
                .tokens = packing.tokens,
                .packed = packing.policy == PackingPolicy::packed};
  for (std::size_t b = 0; b < packing.buckets.size(); ++b) {
    Bucket bucket{packing.buckets[b].edge, packing.bucket_rows(b)};
    for (std::int64_t row = 0; row < bucket.rows; ++row)
      bucket.tokens += packing.row(packing.buckets[b].first_row + row)[0].length;
    all.buckets.push_back(bucket);
  }
  note_unused(workload, all);
  count_steps(workload, all);
  return all;
}

Result<EpochRows> rows_of(const Workload& workload, const BuiltData& data) {
  EpochRows all{.length = workload.model.context(),
                .target_length = workload.model.target_context(),
                .tokens = data.manifest.train.tokens,
                .packed = workload.data.packing && workload.model.target_context() == 0};
  if (all.target_length > 0) {
    all.rows = data.manifest.train.documents;
    count_steps(workload, all);
    return all;
  }
  const PackingRule rule = packing_rule(workload.data);
  const Result<Packing> table = read_packing(*data.folder, data.manifest, false, row_length(workload), rule);
  if (table.ok()) return rows_of(workload, *table);
  if (table.error().kind != ErrorKind::not_found) return table.error();
  const DatasetLengths lengths = TRY(dataset_lengths(*data.folder, data.manifest, false, all.length));
  const LengthHistogram pieces = lengths.documents.in_pieces(all.length);
  all.rows = all.packed ? lengths.packed_rows : pieces.count();
  if (workload.data.buckets) {
    all.buckets = buckets_of(pieces, bucket_edges(pieces, all.length, rule.edges));
    std::erase_if(all.buckets, [](const Bucket& bucket) { return bucket.rows == 0; });
    note_unused(workload, all);
  }
  count_steps(workload, all);
  return all;
}

std::string to_string(const EpochRows& rows) {
  std::string length = counted(rows.length, "token");
  if (rows.target_length > 0)
    length = fmt::format("{} + {}", with_commas(rows.length), counted(rows.target_length, "token"));
  if (!rows.buckets.empty()) {
    std::string text = fmt::format("an epoch is {} in {}, {}: {:.1f}% is padding", counted(rows.rows, "row"),
                                   counted(rows.buckets.size(), "bucket"),
                                   counted(static_cast<std::int64_t>(rows.steps), "step"), 100 * rows.padding());
    if (!rows.unused.empty())
      text += fmt::format("; no row is in the bucket{} of {}", rows.unused.size() == 1 ? "" : "s",
                          fmt::join(rows.unused, ", "));
    return text;
  }
  return fmt::format("an epoch is {} of {}, {}: {:.1f}% is padding", counted(rows.rows, "row"), length,
                     rows.packed              ? "packed"
                     : rows.target_length > 0 ? "a pair in each"
                                              : "one text in each",
                     100 * rows.padding());
}

Node to_node(const EpochRows& rows) {
  Node node = Node::map({{"rows", rows.rows},
                         {"positions", rows.positions()},
                         {"tokens", rows.tokens},
                         {"packed", rows.packed},
                         {"padding_share", rows.padding()}});
  if (rows.buckets.empty()) return node;
  Node buckets = Node::sequence();
  for (const Bucket& bucket : rows.buckets)
    buckets.push(Node::map({{"edge", bucket.edge}, {"rows", bucket.rows}, {"tokens", bucket.tokens}}));
  node.set("buckets", std::move(buckets));
  node.set("steps", rows.steps);
  return node;
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
