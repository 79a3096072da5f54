#pragma once
// The cache of objects in two tiers: a folder on a disk, and one in shared memory that holds some of the same objects.
// Each is an ObjectCache, with its own limit and least recently used. An object that is in memory is read there, and is
// not fetched or kept on the disk for it; any other is brought to the disk and, if memory has room beside what living
// processes hold, copied from there.
//
// The folder in memory is SHARED_MEMORY/systole-UID/objects, of all runs and ranks of a user on a machine. Whatever is in
// it is read as it is, so that nobody else may write there: its mode is 0700, and the folder of another is refused.

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ground/store/object_cache.h"

namespace systole {

inline constexpr const char* kSharedMemory = "/dev/shm";

struct ObjectTierOptions {
  std::string folder;
  std::optional<Bytes> limit;   // none: what its disk has
  std::optional<Bytes> memory;  // none: no tier in memory
  std::string shared_memory = kSharedMemory;
};

// What the tiers have met so far.
struct CacheCounts {
  std::int64_t in_memory = 0, on_disk = 0, fetched = 0;  // objects, by where they were
  Bytes memory_bytes{}, disk_bytes{}, fetched_bytes{};
  std::int64_t damaged = 0;  // files of either that were not as fetched: dropped, and fetched or copied again
  bool operator==(const CacheCounts&) const = default;
};

class ObjectTiers {
 public:
  // Makes the folders. Errors: io; unsupported, the one in memory is not this user's alone.
  static Result<std::unique_ptr<ObjectTiers>> open(const ObjectTierOptions& options);

  std::optional<Hash128> known_hash(const PinnedObject& object) const;
  // Errors: as ObjectCache::bring. That memory has no room is none.
  Status bring(std::span<const PinnedObject> objects, int jobs, const std::function<void(Bytes)>& progress = {});
  CacheCounts counts() const;
  // REQUIRES: it was brought.
  Result<std::string> file_of(const PinnedObject& object) const;

 private:
  ObjectTiers() = default;
  Status copy_to_memory(std::span<const PinnedObject> objects, int jobs);

  std::string folder_, memory_folder_;
  std::optional<Bytes> memory_limit_;
  std::unique_ptr<ObjectCache> disk_, memory_;        // memory_: null without that tier
  std::vector<std::unique_ptr<ObjectCache>> copied_;  // each holds in memory what one bring() has copied there
  std::set<std::string> in_memory_;                   // keys
};

// A warning: the tier in memory has less room than the limit, with what is in it already. Nothing: it has.
std::optional<Error> crowded_memory(Bytes limit, const std::string& shared_memory = kSharedMemory);

}  // namespace systole
