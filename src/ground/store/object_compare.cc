// What an ObjectCache finds in its folder is compared with the hash that is its name, once, before anything reads it. It
// costs a read of the bytes, which the reader finds in the system's cache, and a hash of more than 10 GB/s a core.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "ground/base/os_error.h"
#include "ground/base/parallel.h"
#include "ground/store/object_cache.h"

namespace systole {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;  // remains in a core's cache

// Nothing: the disk cannot read it.
std::optional<Hash128> hash_of(const Fd& file) {
  Hasher hasher;
  std::vector<std::byte> piece(kPiece);
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return hasher.digest();
    hasher.add(std::span(piece).first(static_cast<std::size_t>(got)));
  }
}

}  // namespace

// REQUIRES: `locked` is the folder's. Holds the objects, so that no process evicts them, gives the lock back, and drops
// what is damaged of them.
Status ObjectCache::hold_whole(std::unique_ptr<FileLock> locked, std::span<const PinnedObject> objects, int jobs) {
  TRY(hold(objects));
  locked.reset();
  std::vector<Known> found;
  for (const PinnedObject& object : objects)
    if (const std::optional<Known> one = known(object.key()); one && compared_.insert(one->hash).second)
      found.push_back(*one);
  return for_each_in_parallel(found.size(), jobs, [&](std::size_t i) { return drop_if_damaged(found[i]); });
}

// Other processes that read the file keep what they have open.
Status ObjectCache::drop_if_damaged(const Known& known) {
  const std::string path = bytes_of(known);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0 && errno == ENOENT) return {};  // evicted
  if (file.get() < 0) return os_read_error(errno, "open", path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return os_read_error(errno, "look at", path);
  (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  if (Bytes(std::int64_t{info.st_size}) == known.size && hash_of(file) == known.hash) return {};
  const std::lock_guard in_turn(naming_);
  const std::unique_ptr<FileLock> locked = TRY(lock());
  // Else another process has dropped it, and perhaps fetched it, meanwhile.
  if (is_still_at(file.get(), path) && ::unlink(path.c_str()) != 0) return os_error(errno, "remove", path);
  const std::lock_guard counting(counting_);
  ++counts_.damaged;
  return {};
}

ObjectCounts ObjectCache::counts() const {
  const std::lock_guard counting(counting_);
  return counts_;
}

void ObjectCache::count_found(const PinnedObject& object) {
  const std::lock_guard counting(counting_);
  if (!met_.insert(object.key()).second) return;
  ++counts_.found;
  counts_.found_bytes += object.facts.size;
}

void ObjectCache::count_fetched(const PinnedObject& object) {
  const std::lock_guard counting(counting_);
  if (met_.insert(object.key()).second) ++counts_.fetched;
}

void ObjectCache::count_fetched(Bytes more) {
  const std::lock_guard counting(counting_);
  counts_.fetched_bytes += more;
}

}  // namespace systole
