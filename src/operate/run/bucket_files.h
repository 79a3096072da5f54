#pragma once
// Files of this machine and objects of buckets as one store, for the readers of data: "/home/a.txt" and
// "gs://bucket/a.txt". Objects are pinned when they are expanded, and brought into the cache, all of them at once and
// in parallel, when the first byte of one is read; until then only their size is known, and their hash if they were there
// before.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "execute/data/known_hashes.h"
#include "ground/store/object_tiers.h"
#include "ground/store/read_only_store.h"
#include "ground/store/readable.h"
#include "operate/run/named_objects.h"

namespace systole {

class BucketFiles : public ReadOnlyStore, public OpensFiles, public KnowsHashes {
 public:
  // Time that preparing data has taken; `all` is not a sum of the others.
  struct Spent {
    Seconds list{}, fetch{}, build{}, all{};
  };
  Spent spent;  // the first two by this object, the others by its caller

  using Progress = std::function<void(std::string_view stage, Bytes done)>;
  // `root`: the store at "/". The cache is opened when it is needed.
  BucketFiles(std::unique_ptr<Store> root, ObjectTierOptions cache, Progress progress, StoreAccess access)
      : root_(std::move(root)),
        options_(std::move(cache)),
        progress_(std::move(progress)),
        access_(std::move(access)) {}

  Store& root() { return *root_; }

  // The objects that a pattern names, as paths of this store, ascending. Errors: those of find_objects, and of stores.
  Result<std::vector<std::string>> expand(const std::string& pattern);
  // Errors: those of ObjectTiers::bring.
  Status bring();
  // Nothing: no cache was opened.
  std::optional<CacheCounts> counts() const;

  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override;
  Result<Bytes> size(std::string_view path) override;
  Result<bool> exists(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view dir) override;
  Result<std::unique_ptr<ReadableFile>> open_to_read(std::string_view path) override;
  Result<std::optional<Hash128>> known_hash(std::string_view path) override;

 private:
  // The file in the store at "/" that has the bytes.
  Result<std::string> file_of(std::string_view path);
  Status open_cache();

  const std::unique_ptr<Store> root_;
  const ObjectTierOptions options_;
  const Progress progress_;
  const StoreAccess access_;
  std::vector<std::unique_ptr<ObjectStore>> stores_;
  std::map<std::string, PinnedObject, std::less<>> pinned_;  // by path
  mutable std::mutex mutex_;
  std::unique_ptr<ObjectTiers> cache_;
  bool brought_ = false;
};

}  // namespace systole
