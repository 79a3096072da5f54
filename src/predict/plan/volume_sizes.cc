#include "predict/plan/volume_sizes.h"

#include <limits>
#include <vector>

#include "ground/base/errors.h"
#include "predict/plan/feed_storage.h"

namespace systole {
namespace {

// The rows that the tier has, of small sizes first: Filestore's zonal one has two.
std::vector<const StorageTier*> rows_of(VolumeSpec volume, std::span<const StorageTier> tiers) {
  std::vector<const StorageTier*> rows;
  for (const Bytes size : {Bytes(1), Bytes(std::numeric_limits<std::int64_t>::max())}) {
    volume.size = size;
    const StorageTier* row = tier_of_volume(volume, tiers);
    if (row != nullptr && (rows.empty() || rows.back() != row)) rows.push_back(row);
  }
  return rows;
}

std::string gib_text(Bytes size) { return fmt::format("{}GiB", size.count() / kGiB.count()); }

// Nothing: the size is offered, or nobody knows.
std::optional<Error> wrong_size(const std::string& path, const VolumeSpec& volume, std::span<const StorageTier> tiers) {
  // Local disks are of whole machines, and a size is what a pod may take of them.
  if (!volume.made() || volume.open() || !volume.size || volume.kind == VolumeSpec::Kind::local_ssd)
    return std::nullopt;
  std::string ranges;
  std::optional<Bytes> nearest;
  const auto away = [&](Bytes size) { return size > *volume.size ? size - *volume.size : *volume.size - size; };
  for (const StorageTier* row : rows_of(volume, tiers)) {
    if (!row->least || !row->most || (*row->least <= *volume.size && *volume.size <= *row->most)) return std::nullopt;
    ranges += fmt::format("{}{} to {}", ranges.empty() ? "" : ", or ", to_string(*row->least), to_string(*row->most));
    for (const Bytes end : {*row->least, *row->most})
      if (!nearest || away(end) < away(*nearest)) nearest = end;
  }
  if (!nearest) return std::nullopt;
  return key_error(ErrorKind::invalid, fmt::format("volumes.{}.size", path), "{} {} has {}, and not {}",
                   name_of(volume.kind), volume.of, ranges, to_string(*volume.size))
      .hinted(fmt::format("size: {}", gib_text(*nearest)));
}

}  // namespace

Status check_sizes(const Workload& workload, std::span<const StorageTier> tiers) {
  std::vector<Error> wrong;
  for (const auto& [path, volume] : workload.volumes)
    if (std::optional<Error> one = wrong_size(path, volume, tiers)) wrong.push_back(*std::move(one));
  if (!wrong.empty()) return together(std::move(wrong));
  return {};
}

}  // namespace systole
