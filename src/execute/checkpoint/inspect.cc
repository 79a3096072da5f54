#include "execute/checkpoint/inspect.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "execute/checkpoint/compare.h"
#include "execute/checkpoint/names.h"
#include "execute/checkpoint/safetensors.h"

namespace systole::checkpoint {

namespace {

constexpr Bytes kSlab = 4 * kMiB;

Summary summary_of(const Folder& folder, std::int64_t step, const Manifest& manifest,
                   const std::set<std::string>& chunks) {
  Summary summary;
  summary.step = step;
  summary.path = folder.manifest(step);
  summary.date = manifest.date;
  summary.identity = manifest.identity;
  summary.metric = manifest.metric;
  summary.num_tensors = static_cast<std::int64_t>(manifest.tensors.size());
  summary.num_chunks = static_cast<std::int64_t>(manifest.chunks.size());
  summary.tensor_bytes = manifest.tensor_bytes();
  summary.chunk_bytes = manifest.chunk_bytes();
  for (const ChunkFile& chunk : manifest.chunks) {
    if (!chunks.contains(chunk.hash)) summary.missing_chunks.push_back(chunk.hash);
  }
  return summary;
}

}  // namespace

Result<std::vector<Summary>> list(const Folder& folder) {
  const auto blessed = TRY(list_blessed(folder));
  std::set<std::string> chunks;
  for (std::string& name : TRY(names_under(folder, folder.chunks()))) chunks.insert(std::move(name));
  std::vector<Summary> rows;
  std::vector<std::vector<ChunkFile>> chunks_of;
  std::map<std::string, int> uses;
  for (std::int64_t step : TRY(list_steps(folder))) {
    auto manifest = load_manifest(folder, step);
    if (manifest) {
      rows.push_back(summary_of(folder, step, *manifest, chunks));
      for (const ChunkFile& chunk : manifest->chunks) ++uses[chunk.hash];
      chunks_of.push_back(std::move(manifest->chunks));
    } else {
      rows.push_back({});
      rows.back().step = step;
      rows.back().path = folder.manifest(step);
      rows.back().unreadable = std::move(manifest).error();
      chunks_of.emplace_back();
    }
    rows.back().blessed = std::binary_search(blessed.begin(), blessed.end(), step);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const ChunkFile& chunk : chunks_of[r]) {
      if (uses[chunk.hash] == 1) rows[r].own_bytes += chunk.bytes;
    }
  }
  return rows;
}

Result<TensorSummary> summarize(const Checkpoint& checkpoint, std::string_view name) {
  const TensorEntry* tensor = checkpoint.manifest().find(name);
  if (!tensor) {
    return error(ErrorKind::not_found, "checkpoint {} has no tensor '{}'", checkpoint.manifest().step, name)
        .hinted(nearest_hint(checkpoint.manifest(), name));
  }
  TensorSummary summary;
  double sum = 0, squares = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  TRY(for_each_slab(checkpoint, *tensor, kSlab, [&](std::span<const std::byte> bytes) -> Status {
    const std::int64_t count = static_cast<std::int64_t>(bytes.size()) / size_of(tensor->dtype);
    summary.elements += count;
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = load(tensor->dtype, bytes.data(), i);
      if (!std::isfinite(value)) {
        ++summary.not_finite;
        continue;
      }
      sum += value;
      squares += value * value;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    return {};
  }));
  const auto finite = static_cast<double>(summary.elements - summary.not_finite);
  if (finite > 0) {
    summary.min = low;
    summary.max = high;
    summary.mean = sum / finite;
    summary.rms = std::sqrt(squares / finite);
  }
  return summary;
}

Status export_safetensors(const Checkpoint& checkpoint, Role role, Store& store, std::string_view path) {
  std::vector<SafetensorsSource> sources;
  for (const TensorEntry& tensor : checkpoint.manifest().tensors) {
    if (tensor.role != role) continue;
    sources.push_back(
        {tensor.name, tensor.dtype, tensor.shape, [&checkpoint, &tensor](const SafetensorsSource::Take& take) {
           return for_each_slab(checkpoint, tensor, kSlab, take);
         }});
  }
  return write_safetensors(store, path, std::move(sources),
                           {{"format", "pt"},
                            {"step", std::to_string(checkpoint.manifest().step)},
                            {"model", checkpoint.manifest().identity.model}});
}

}  // namespace systole::checkpoint
