#include "ground/store/object_tiers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/base/free_space.h"
#include "ground/base/os_error.h"
#include "ground/store/store.h"

namespace systole {
namespace {

constexpr const char* kKey = "data.cache.memory";

std::string folder_in(const std::string& shared_memory) {
  return fmt::format("{}/systole-{}", shared_memory, ::geteuid());
}

// Memory that is full is no error: its objects are read on the disk.
bool is_full(const Error& error) { return error.kind == ErrorKind::no_space || error.kind == ErrorKind::does_not_fit; }

// Made, or found, as this user's alone.
Result<std::string> own_folder(const std::string& shared_memory) {
  const std::string folder = folder_in(shared_memory);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return os_error(errno, "create", folder);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return os_error(errno, "look at", folder);
  const auto refused = [&](const std::string& why, const std::string& edit) {
    return error(ErrorKind::unsupported, "{}: '{}' {}, and only this user may write what is read there", kKey, folder,
                 why)
        .hinted(edit + "; or leave data.cache.memory out");
  };
  if (!S_ISDIR(info.st_mode)) return refused("is not a folder", "rm " + folder);
  if (info.st_uid != ::geteuid())
    return refused(fmt::format("belongs to the user {}", info.st_uid), "sudo rm -r " + folder);
  if ((info.st_mode & 077) != 0)
    return refused(fmt::format("has mode {:04o}", info.st_mode & 07777), "rm -r " + folder);
  return folder + "/objects";
}

}  // namespace

Result<std::unique_ptr<ObjectTiers>> ObjectTiers::open(const ObjectTierOptions& options) {
  std::unique_ptr<ObjectTiers> tiers(new ObjectTiers);
  tiers->folder_ = TRY(absolute_path(options.folder));
  tiers->disk_ = TRY(ObjectCache::open(options.folder, options.limit));
  if (!options.memory) return tiers;
  const Result<std::string> folder = own_folder(options.shared_memory);
  if (!folder.ok() && is_full(folder.error())) return tiers;
  tiers->memory_folder_ = TRY(folder);
  tiers->memory_limit_ = options.memory;
  Result<std::unique_ptr<ObjectCache>> memory = ObjectCache::open(tiers->memory_folder_, options.memory);
  if (!memory.ok() && is_full(memory.error())) return tiers;
  tiers->memory_ = TRY(std::move(memory));
  return tiers;
}

std::optional<Hash128> ObjectTiers::known_hash(const PinnedObject& object) const {
  if (const std::optional<Hash128> hash = disk_->known_hash(object)) return hash;
  return memory_ ? memory_->known_hash(object) : std::nullopt;
}

Status ObjectTiers::bring(std::span<const PinnedObject> objects, int jobs, const std::function<void(Bytes)>& progress) {
  if (!memory_) return disk_->bring(objects, jobs, progress);
  const Result<std::vector<PinnedObject>> here = memory_->keep_what_is_here(objects, jobs);
  if (!here.ok() && !is_full(here.error())) return here.error();
  if (here.ok())
    for (const PinnedObject& object : *here) in_memory_.insert(object.key());
  std::vector<PinnedObject> others;
  for (const PinnedObject& object : objects)
    if (!in_memory_.contains(object.key())) others.push_back(object);
  if (others.empty()) return {};
  TRY(disk_->bring(others, jobs, progress));
  return copy_to_memory(others, jobs);
}

CacheCounts ObjectTiers::counts() const {
  const ObjectCounts disk = disk_->counts(), memory = memory_ ? memory_->counts() : ObjectCounts();
  CacheCounts all{memory.found,
                  disk.found,
                  disk.fetched,
                  memory.found_bytes,
                  disk.found_bytes,
                  disk.fetched_bytes,
                  disk.damaged + memory.damaged};
  for (const std::unique_ptr<ObjectCache>& copies : copied_) all.damaged += copies->counts().damaged;
  return all;
}

// REQUIRES: they are on the disk, and held there.
Status ObjectTiers::copy_to_memory(std::span<const PinnedObject> objects, int jobs) {
  const std::unique_ptr<Store> files = TRY(open_posix_store(folder_));
  const std::unique_ptr<ObjectStore> disk = objects_in(*files);
  std::vector<PinnedObject> copies(objects.begin(), objects.end());
  for (PinnedObject& copy : copies) {
    copy.path = std::filesystem::path(TRY(disk_->file_of(copy))).filename().string();
    copy.store = disk.get();
  }
  std::unique_ptr<ObjectCache> memory = TRY(ObjectCache::open(memory_folder_, memory_limit_));
  Result<std::vector<PinnedObject>> held = memory->bring_what_fits(copies, jobs);
  if (!held.ok()) {
    if (!is_full(held.error())) return held.error();
    // Others have taken the room meanwhile: what is not copied is read on the disk, and no longer held in memory.
    memory->remove_parts(copies);
    memory.reset();
    memory = TRY(ObjectCache::open(memory_folder_, memory_limit_));
    held = memory->keep_what_is_here(copies, jobs);
    if (!held.ok() && is_full(held.error())) return {};
    if (!held.ok()) return held.error();
  }
  for (const PinnedObject& object : *held) in_memory_.insert(object.key());
  copied_.push_back(std::move(memory));
  return {};
}

Result<std::string> ObjectTiers::file_of(const PinnedObject& object) const {
  if (!in_memory_.contains(object.key())) return disk_->file_of(object);
  // Shared memory may be emptied, by systemd when its user has logged out; what was copied is on the disk too.
  Result<std::string> file = memory_->file_of(object);
  std::error_code unknown;
  if (!file.ok() || std::filesystem::exists(*file, unknown)) return file;
  Result<std::string> copied = disk_->file_of(object);
  return copied.ok() ? copied : file;
}

// A limit beyond the machine's memory is no matter of a mount.
static std::string hint_of_room(Bytes limit, Bytes room, const std::string& shared_memory) {
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const std::string less = room < kMiB ? "" : fmt::format("data.cache.memory: {}MiB", room.count() >> 20);
  if (static_cast<double>(limit.count()) > memory) return less;
  return fmt::format("{}{}sudo mount -o remount,size={}G {}; in a container --shm-size", less,
                     less.empty() ? "" : "; or ", (limit.count() >> 30) + 1, shared_memory);
}

std::optional<Error> crowded_memory(Bytes limit, const std::string& shared_memory) {
  const Result<Bytes> free = free_space_at(shared_memory);
  if (!free.ok())
    return error(ErrorKind::not_found, "there is no shared memory at {}", shared_memory)
        .hinted("leave data.cache.memory out");
  Bytes room = *free;
  for (const std::filesystem::path& file : paths_in(folder_in(shared_memory) + "/objects")) {
    std::error_code gone;
    if (const auto size = file_size(file, gone); !gone) room += Bytes(static_cast<std::int64_t>(size));
  }
  if (room >= limit) return std::nullopt;
  return error(ErrorKind::does_not_fit, "{}, and {} has {} for it: the other objects are read from data.cache.folder",
               to_string(limit), shared_memory, to_string(room))
      .hinted(hint_of_room(limit, room, shared_memory));
}

}  // namespace systole
