#include "execute/checkpoint/reshard.h"

#include "execute/checkpoint/restore_parts.h"

namespace systole::checkpoint {

namespace {

Result<std::vector<LaidTensor>> lay(const Manifest& manifest, const ShardingOf& sharding_of) {
  std::vector<LaidTensor> tensors;
  for (const TensorEntry& tensor : manifest.tensors) {
    tensors.push_back({tensor.name, tensor.role, tensor.dtype, tensor.shape, TRY(sharding_of(tensor)), 0});
  }
  return tensors;
}

// Counts the pieces that contain elements of each device's shards.
std::int64_t reads(const Manifest& manifest, std::span<const LaidTensor> tensors, const Mesh& mesh) {
  std::int64_t count = 0;
  for (const LaidTensor& tensor : tensors) {
    const TensorEntry* entry = manifest.find(tensor.name);
    for (std::int64_t device = 0; device < mesh.num_devices(); ++device) {
      const Box box = box_on(tensor.shape, tensor.sharding, mesh, device).value();
      for (const Piece& piece : entry->pieces) count += intersect(piece.box, box).has_value();
    }
  }
  return count;
}

// Reads what a rank owns from the old chunks and writes it into new ones.
Result<Fragment> rewrite(const Checkpoint& from, std::span<const LaidTensor> tensors, std::span<const OwnedBox> owned,
                         std::size_t rank, const SaveOptions& options) {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<RestoreDestination> targets;
  std::vector<TensorPart> parts;
  buffers.reserve(owned.size());
  for (const OwnedBox& one : owned) {
    const LaidTensor& tensor = tensors[one.tensor];
    buffers.emplace_back(static_cast<std::size_t>(one.box.num_elements() * size_of(tensor.dtype)));
    targets.push_back({tensor.name, tensor.dtype, tensor.shape, one.box, buffers.back()});
    parts.push_back({tensor.name, tensor.role, tensor.dtype, tensor.shape, one.box, buffers.back()});
  }
  TRY(restore_parts(from, targets, options.threads));
  return write_chunks(from.folder(), parts, options);
}

SaveRequest request_of(const Manifest& manifest) {
  SaveRequest request;
  request.step = manifest.step;
  request.date = manifest.date;
  request.identity = manifest.identity;
  request.metric = manifest.metric;
  request.extra = manifest.extra;
  return request;
}

// A tensor without elements has no owner, but the manifest must list it.
Fragment with_empty_tensors(std::span<const LaidTensor> tensors) {
  Fragment fragment;
  for (const LaidTensor& tensor : tensors)
    fragment.tensors.push_back({tensor.name, tensor.role, tensor.dtype, tensor.shape, {}});
  return fragment;
}

Result<ReshardReport> rewrite_all(const Checkpoint& from, std::span<const LaidTensor> tensors, const Mesh& mesh,
                                  const SaveOptions& options) {
  const auto owned = TRY(assign_owners(tensors, mesh));
  std::vector<Fragment> fragments = {with_empty_tensors(tensors)};
  ReshardReport report;
  for (std::size_t rank = 0; rank < owned.size(); ++rank) {
    fragments.push_back(TRY(rewrite(from, tensors, owned[rank], rank, options)));
    report.written += fragments.back().stats.written;
  }
  TRY(commit(from.folder(), request_of(from.manifest()), fragments, options));
  report.chunks_before = static_cast<std::int64_t>(from.manifest().chunks.size());
  report.reads_before = reads(from.manifest(), tensors, mesh);
  const Manifest after = TRY(load_manifest(from.folder(), from.manifest().step));
  report.chunks_after = static_cast<std::int64_t>(after.chunks.size());
  report.reads_after = reads(after, tensors, mesh);
  return report;
}

}  // namespace

Result<ReshardReport> reshard(const Checkpoint& from, const Mesh& mesh, const ShardingOf& sharding_of,
                              const SaveOptions& options) {
  const std::vector<LaidTensor> tensors = TRY(lay(from.manifest(), sharding_of));
  auto report = rewrite_all(from, tensors, mesh, options);
  // Removes chunks that only the replaced manifest named.
  auto swept = sweep(from.folder(), Retention{.last = 0}, {}, from.manifest().step);
  if (report && !swept) return std::move(swept).error();
  return report;
}

}  // namespace systole::checkpoint
