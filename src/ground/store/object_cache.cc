#include "ground/store/object_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <set>

#include "ground/base/files.h"
#include "ground/base/free_space.h"
#include "ground/base/number_from.h"
#include "ground/base/os_error.h"
#include "ground/base/parallel.h"
#include "ground/store/store.h"

namespace systole {
namespace {

constexpr Seconds kPatience{120.0};  // for the lock, which is held for moments
constexpr std::string_view kBytes = ".bytes", kFrom = ".from", kPart = ".part", kHold = ".hold";

std::optional<std::string> text_of(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (ssize_t got = 1; got > 0;) {
    got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      got = 1;
    else if (got < 0)
      return std::nullopt;
    else
      text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

Status write_all(const Fd& fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return os_error(errno, "write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

std::optional<Hash128> read_hash(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  Hash128 hash;
  for (const auto& [digits, half] : {std::pair(text.substr(0, 16), &hash.high), {text.substr(16), &hash.low}}) {
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), *half, 16);
    if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  return hash;
}

// "KEY SIZE" a line.
std::map<std::string, Bytes> read_hold(std::string_view text) {
  std::map<std::string, Bytes> keys;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t space = line.find(' ');
    if (space != line.npos)
      if (const auto size = number_from(line.substr(space + 1)))
        keys[std::string(line.substr(0, space))] = Bytes(*size);
    at = end + 1;
  }
  return keys;
}

}  // namespace

std::string PinnedObject::key() const {
  return to_hex(hash128(fmt::format("{}\n{}\n{}", shown, facts.generation.text, facts.size.count())));
}

Result<std::unique_ptr<ObjectCache>> ObjectCache::open(std::string folder, std::optional<Bytes> limit) {
  TRY(make_folders(folder));
  return std::unique_ptr<ObjectCache>(new ObjectCache(TRY(absolute_path(folder)), limit));
}

ObjectCache::~ObjectCache() {
  if (!hold_name_.empty()) ::unlink(at(hold_name_).c_str());
}

std::optional<ObjectCache::Known> ObjectCache::known(const std::string& key) const {
  const std::optional<std::string> text = text_of(at(key + std::string(kFrom)));
  if (!text) return std::nullopt;
  const std::string_view line = std::string_view(*text).substr(0, std::min(text->find('\n'), text->size()));
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::optional<Hash128> hash = read_hash(line.substr(0, space));
  const auto size = number_from(line.substr(std::min(space + 1, line.size())));
  if (!hash || !size) return std::nullopt;
  return Known{*hash, Bytes(*size)};
}

std::optional<Hash128> ObjectCache::known_hash(const PinnedObject& object) const {
  const std::optional<Known> found = known(object.key());
  if (!found || found->size != object.facts.size) return std::nullopt;
  return found->hash;
}

bool ObjectCache::has(const std::string& key) const {
  const std::optional<Known> found = known(key);
  struct stat info {};
  return found && ::stat(bytes_of(*found).c_str(), &info) == 0 && Bytes(std::int64_t{info.st_size}) == found->size;
}

Result<std::string> ObjectCache::file_of(const PinnedObject& object) const {
  const std::optional<Known> found = known(object.key());
  if (found) return bytes_of(*found);
  return error(ErrorKind::not_found, "'{}' is not in the cache '{}'", object.shown, folder_);
}

Result<std::unique_ptr<FileLock>> ObjectCache::lock() const { return lock_folder(folder_, kPatience, *real_clock()); }

// REQUIRES: the folder is locked.
Status ObjectCache::hold(std::span<const PinnedObject> objects) {
  for (const PinnedObject& object : objects) held_[object.key()] = object.facts.size;
  if (hold_.get() < 0) {
    hold_name_ = fmt::format("{}-{:08x}{}", ::getpid(), std::random_device()(), kHold);
    hold_ = Fd(::open(at(hold_name_).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (hold_.get() < 0) return os_error(errno, "create", at(hold_name_));
    if (!try_flock(hold_.get(), LOCK_EX)) return os_error(errno, "lock", at(hold_name_));
  }
  std::string text;
  for (const auto& [key, size] : held_) text += fmt::format("{} {}\n", key, size.count());
  if (::ftruncate(hold_.get(), 0) != 0 || ::lseek(hold_.get(), 0, SEEK_SET) != 0)
    return os_error(errno, "write", at(hold_name_));
  return write_all(hold_, std::as_bytes(std::span(text)), at(hold_name_));
}

struct ObjectCache::Evictable {
  std::string name;
  Bytes size{};
  std::int64_t used = 0;  // nanoseconds
};

// What is in the folder, and what of it may go.
struct ObjectCache::Content {
  Bytes bytes{};                     // of files, and of what is still to be fetched by those who hold it
  Bytes held{};                      // of these, what living processes hold
  Bytes missing{};                   // of these, what is not on the disk yet
  std::set<std::string> keys;        // held
  std::vector<Evictable> evictable;  // the least recently used first
};

// REQUIRES: the folder is locked. Removes holds of processes that are gone.
Result<ObjectCache::Content> ObjectCache::content() const {
  std::map<std::string, Bytes> keys = held_;
  std::vector<std::string> names;
  for (const std::filesystem::path& path : paths_in(folder_)) names.push_back(path.filename().string());
  for (const std::string& file : names) {
    if (!file.ends_with(kHold) || file == hold_name_) continue;
    const Fd fd(::open(at(file).c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() >= 0 && try_flock(fd.get(), LOCK_EX)) {
      ::unlink(at(file).c_str());
      continue;
    }
    keys.merge(read_hold(text_of(at(file)).value_or("")));
  }
  Content all;
  std::set<std::string> kept;  // names of files
  for (const auto& [key, size] : keys) {
    all.keys.insert(key);
    kept.insert(key + std::string(kPart));
    if (has(key)) {
      kept.insert(to_hex(known(key)->hash) + std::string(kBytes));
      continue;
    }
    struct stat part {};
    const bool begun = ::stat(at(key + std::string(kPart)).c_str(), &part) == 0;
    const Bytes left = begun ? size - std::min(size, Bytes(std::int64_t{part.st_size})) : size;
    all.bytes += left;
    all.held += left;
    all.missing += left;
  }
  for (const std::string& file : names) {
    if (!file.ends_with(kBytes) && !file.ends_with(kPart)) continue;
    struct stat info {};
    if (::stat(at(file).c_str(), &info) != 0) continue;
    const Bytes size(std::int64_t{info.st_size});
    all.bytes += size;
    if (kept.contains(file)) {
      all.held += size;
    } else {
      all.evictable.push_back({file, size, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec});
    }
  }
  std::ranges::sort(all.evictable, {}, &Evictable::used);
  return all;
}

// REQUIRES: the folder is locked.
Result<std::vector<PinnedObject>> ObjectCache::fitting(std::span<const PinnedObject> objects) const {
  Content all = TRY(content());
  Bytes room = TRY(free_space_at(folder_)) - all.missing;
  for (const Evictable& old : all.evictable) room += old.size;
  if (limit_) room = std::min(room, *limit_ - all.held);
  std::vector<PinnedObject> chosen;
  for (const PinnedObject& object : objects) {
    if (!all.keys.contains(object.key())) {
      if (object.facts.size > room) continue;
      room -= object.facts.size;
      all.keys.insert(object.key());
    }
    chosen.push_back(object);
  }
  return chosen;
}

// REQUIRES: the folder is locked. Evicts nothing for what does not fit anyway.
Status ObjectCache::make_room() const {
  Content all = TRY(content());
  Bytes room = TRY(free_space_at(folder_));
  Bytes evictable;
  for (const Evictable& old : all.evictable) evictable += old.size;
  if (limit_ && all.bytes - evictable > *limit_) {
    return error(ErrorKind::does_not_fit, "the cache '{}' would hold {}, all of it in use, and its limit is {}",
                 folder_, to_string(all.held), to_string(*limit_))
        .hinted(fmt::format("data.cache.limit: {}GiB", (all.held.count() >> 30) + 1));
  }
  if (all.missing > room + evictable) {
    return error(ErrorKind::does_not_fit, "{} are to be fetched into the cache '{}', and its disk has {} for them",
                 to_string(all.missing), folder_, to_string(room + evictable))
        .hinted("free some space, or data.cache.folder: one on another disk");
  }
  for (const Evictable& old : all.evictable) {
    if ((!limit_ || all.bytes <= *limit_) && all.missing <= room) break;
    if (::unlink(at(old.name).c_str()) != 0 && errno != ENOENT) return os_error(errno, "remove", at(old.name));
    all.bytes -= old.size;
    room += old.size;
  }
  return {};
}

// REQUIRES: the folder is locked. Returns those that are not here, for which there is room now.
Result<std::vector<const PinnedObject*>> ObjectCache::hold_all(std::span<const PinnedObject> objects) {
  TRY(hold(objects));
  std::vector<const PinnedObject*> missing;
  std::set<std::string> seen;
  for (const PinnedObject& object : objects) {
    const std::string key = object.key();
    if (!seen.insert(key).second) continue;
    if (!has(key)) {
      missing.push_back(&object);
    } else {
      count_found(object);
      (void)::utimensat(AT_FDCWD, bytes_of(*known(key)).c_str(), nullptr, 0);  // used now
    }
  }
  if (!missing.empty()) TRY(make_room());
  return missing;
}

Status ObjectCache::fetch_all(std::span<const PinnedObject* const> objects, int jobs,
                              const std::function<void(Bytes)>& progress) {
  return for_each_in_parallel(objects.size(), jobs, [&](std::size_t i) {
    return fetch(
        *objects[i], progress ? progress : [](Bytes) {});
  });
}

Status ObjectCache::bring(std::span<const PinnedObject> objects, int jobs, const std::function<void(Bytes)>& progress) {
  TRY(hold_whole(TRY(lock()), objects, jobs));
  std::unique_ptr<FileLock> locked = TRY(lock());
  const std::vector<const PinnedObject*> missing = TRY(hold_all(objects));
  locked.reset();
  return fetch_all(missing, jobs, progress);
}

Result<std::vector<PinnedObject>> ObjectCache::bring_what_fits(std::span<const PinnedObject> objects, int jobs) {
  std::unique_ptr<FileLock> locked = TRY(lock());
  std::vector<PinnedObject> chosen = TRY(fitting(objects));
  TRY(hold_whole(std::move(locked), chosen, jobs));
  locked = TRY(lock());
  const std::vector<const PinnedObject*> missing = TRY(hold_all(chosen));
  locked.reset();
  TRY(fetch_all(missing, jobs, {}));
  return chosen;
}

Result<std::vector<PinnedObject>> ObjectCache::keep_what_is_here(std::span<const PinnedObject> objects, int jobs) {
  const auto is_here = [&](const PinnedObject& object) { return has(object.key()); };
  std::unique_ptr<FileLock> locked = TRY(lock());
  std::vector<PinnedObject> here, whole;
  std::ranges::copy_if(objects, std::back_inserter(here), is_here);
  if (here.empty()) return here;
  TRY(hold_whole(std::move(locked), here, jobs));
  locked = TRY(lock());
  std::ranges::copy_if(here, std::back_inserter(whole), is_here);
  for (const PinnedObject& object : here)
    if (!is_here(object)) held_.erase(object.key());
  TRY(hold_all(whole));
  return whole;
}

void ObjectCache::remove_parts(std::span<const PinnedObject> objects) const {
  for (const PinnedObject& object : objects) {
    const std::string path = at(object.key() + std::string(kPart));
    const Fd part(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (part.get() >= 0 && try_flock(part.get(), LOCK_EX) && is_still_at(part.get(), path)) ::unlink(path.c_str());
  }
}

Status ObjectCache::fetch(const PinnedObject& object, const std::function<void(Bytes)>& arrived) {
  const std::string key = object.key(), path = at(key + std::string(kPart));
  const auto was_faster = [&]() -> Status {  // another process
    count_found(object);
    return {};
  };
  while (true) {
    if (has(key)) return was_faster();
    const Fd part(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (part.get() < 0) return os_error(errno, "create", path);
    if (!try_flock(part.get(), LOCK_EX)) {
      if (errno != EWOULDBLOCK) return os_error(errno, "lock", path);
      real_clock()->sleep(Seconds(0.05));
      continue;
    }
    if (!is_still_at(part.get(), path)) continue;
    if (has(key)) {
      ::unlink(path.c_str());
      return was_faster();
    }
    ByteSums sums = sums_for(object.facts);
    TRY(fill(object, part, sums, arrived));
    TRY(name(object, sums));
    count_fetched(object);
    return {};
  }
}

// The part becomes whole, from where an earlier fetch ended: but from its begin where no checksum would tell that a
// power cut left zeros in it.
Status ObjectCache::fill(const PinnedObject& object, const Fd& part, ByteSums& sums,
                         const std::function<void(Bytes)>& arrived) {
  const std::string path = at(object.key() + std::string(kPart));
  const auto begin_anew = [&]() -> Status {
    sums = sums_for(object.facts);
    if (::ftruncate(part.get(), 0) != 0 || ::lseek(part.get(), 0, SEEK_SET) != 0) return os_error(errno, "write", path);
    return {};
  };
  if (!object.facts.is_checked()) TRY(begin_anew());
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  bool goes_on = false;
  for (ssize_t got = 1; got > 0;) {
    got = ::read(part.get(), buffer.data(), buffer.size());
    if (got < 0) return os_read_error(errno, "read", path);
    sums.add(std::span(buffer).first(static_cast<std::size_t>(got)));
    goes_on = goes_on || got > 0;
  }
  if (sums.size() > object.facts.size) TRY(begin_anew());
  if (sums.size() > Bytes()) arrived(sums.size());
  const auto read = [&] {
    return read_version(*object.store, object.path, object.facts, object.shown, sums,
                        [&](std::span<const std::byte> bytes) -> Status {
                          TRY(write_all(part, bytes, path));
                          count_fetched(Bytes(bytes.size()));
                          arrived(Bytes(bytes.size()));
                          return {};
                        });
  };
  Status done = read();
  if (!done.ok() && done.error().kind == ErrorKind::corrupt) {
    TRY(begin_anew());
    if (goes_on) done = read();
  }
  if (!done.ok() && done.error().kind == ErrorKind::corrupt) TRY(begin_anew());
  TRY(std::move(done));
  if (::fsync(part.get()) != 0) return os_error(errno, "sync", path);
  return {};
}

Status ObjectCache::name(const PinnedObject& object, const ByteSums& sums) const {
  const std::string key = object.key(), part = at(key + std::string(kPart)), from = at(key + std::string(kFrom));
  const Known found{sums.hash(), sums.size()};
  const std::lock_guard in_turn(naming_);
  const std::unique_ptr<FileLock> locked = TRY(lock());
  const std::unique_ptr<Store> files = TRY(open_posix_store(folder_));
  // First what may find no room, so that no bytes stay that nothing names.
  TRY(write_whole(*files, key + std::string(kFrom),
                  fmt::format("{} {}\n{}\n{}\n", to_hex(found.hash), found.size.count(), object.shown,
                              object.facts.generation.text)));
  if (::rename(part.c_str(), bytes_of(found).c_str()) != 0) return os_error(errno, "rename", part);
  return {};
}

}  // namespace systole
