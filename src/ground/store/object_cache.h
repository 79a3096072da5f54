#pragma once
// Objects of buckets as files of this machine, shared between processes: a folder with a limit on its bytes. Unlike
// ContentCache, whose values are made again from their keys, it holds files too large for memory, goes on with a fetch
// that was broken off, and evicts nothing that a living process reads.
//
//   HASH.bytes      an object's bytes, under the XXH3-128 of them: the same bytes of two buckets are kept once
//   KEY.from        for one version of one object: that hash and its size. It stays when the bytes are evicted, so that
//                   a dataset's key is known without fetching them again
//   KEY.part        bytes as they come, locked by who fetches; a later fetch of the version goes on with them
//   PID-….hold      the keys that a process uses, locked as long as it lives
//   lock            held for the moments in which names appear, or are evicted
//
// Killed at any point, a process leaves a part that is gone on with and a hold that no longer counts. The bytes are
// compared with the checksum that their store states before they have a name, and with the hash that is their name when
// an ObjectCache first finds them: what a disk has changed since is dropped, and fetched again.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "ground/base/fd.h"
#include "ground/store/lock.h"
#include "ground/store/object_facts.h"

namespace systole {

// One version of an object.
struct PinnedObject {
  ObjectStore* store = nullptr;  // borrowed
  std::string path, shown;       // in the store; "gs://bucket/a"
  ObjectFacts facts;
  std::string key() const;
};

// What an ObjectCache has met so far.
struct ObjectCounts {
  std::int64_t found = 0, fetched = 0;   // objects that were here, whole; and that were not
  Bytes found_bytes{}, fetched_bytes{};  // of these; and what came, without the part that a broken fetch had left
  std::int64_t damaged = 0;              // files here that were not as fetched, and were dropped
};

class ObjectCache {
 public:
  // Makes the folder. `limit`: of all bytes in it; none: what its disk has. Errors: io.
  static Result<std::unique_ptr<ObjectCache>> open(std::string folder, std::optional<Bytes> limit);

  ~ObjectCache();

  // Of the bytes, if this version was here once.
  std::optional<Hash128> known_hash(const PinnedObject& object) const;

  // Fetches those that are not here, and keeps all until this object is destroyed. `progress`: with the bytes fetched;
  // called by several threads. Errors: does_not_fit, with the limit; no_space; io; corrupt; busy, an object was
  // replaced after it was pinned.
  Status bring(std::span<const PinnedObject> objects, int jobs, const std::function<void(Bytes)>& progress = {});
  // As bring, but of the objects, in their order, those that are here or that fit beside what processes hold. Returns
  // these. Errors: as bring.
  Result<std::vector<PinnedObject>> bring_what_fits(std::span<const PinnedObject> objects, int jobs);
  // Keeps those that are here, and returns them. Errors: io.
  Result<std::vector<PinnedObject>> keep_what_is_here(std::span<const PinnedObject> objects, int jobs);
  ObjectCounts counts() const;
  // Removes what a fetch of them that failed has left, and nothing that a process fetches now.
  void remove_parts(std::span<const PinnedObject> objects) const;
  // REQUIRES: it was brought, or kept.
  Result<std::string> file_of(const PinnedObject& object) const;

 private:
  struct Known {
    Hash128 hash;
    Bytes size{};
  };
  struct Evictable;
  struct Content;
  ObjectCache(std::string folder, std::optional<Bytes> limit) : folder_(std::move(folder)), limit_(limit) {}
  std::string at(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }
  std::string bytes_of(const Known& known) const { return at(to_hex(known.hash) + ".bytes"); }
  std::optional<Known> known(const std::string& key) const;
  bool has(const std::string& key) const;
  Result<std::unique_ptr<FileLock>> lock() const;
  Status hold(std::span<const PinnedObject> objects);
  Result<Content> content() const;
  Result<std::vector<PinnedObject>> fitting(std::span<const PinnedObject> objects) const;
  Result<std::vector<const PinnedObject*>> hold_all(std::span<const PinnedObject> objects);
  Status make_room() const;
  Status hold_whole(std::unique_ptr<FileLock> locked, std::span<const PinnedObject> objects, int jobs);
  Status drop_if_damaged(const Known& known);
  void count_found(const PinnedObject& object);
  void count_fetched(const PinnedObject& object);
  void count_fetched(Bytes more);
  Status fetch_all(std::span<const PinnedObject* const> objects, int jobs, const std::function<void(Bytes)>& progress);
  Status fetch(const PinnedObject& object, const std::function<void(Bytes)>& arrived);
  Status fill(const PinnedObject& object, const Fd& part, ByteSums& sums, const std::function<void(Bytes)>& arrived);
  Status name(const PinnedObject& object, const ByteSums& sums) const;

  const std::string folder_;
  const std::optional<Bytes> limit_;
  mutable std::mutex naming_;  // before the lock, which waits for other threads as for other processes
  Fd hold_;
  std::string hold_name_;
  std::map<std::string, Bytes> held_;  // by key
  std::set<Hash128> compared_;         // the bytes that were here, with their hash
  std::set<std::string> met_;          // keys that are counted
  mutable std::mutex counting_;
  ObjectCounts counts_;
};

}  // namespace systole
