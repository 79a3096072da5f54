#include "operate/run/bucket_files.h"

#include "ground/base/clock.h"
#include "ground/base/parallel.h"

namespace systole {
namespace {

constexpr int kAtATime = 8;  // objects

}  // namespace

Result<std::vector<std::string>> BucketFiles::expand(const std::string& pattern) {
  const Seconds began = real_clock()->now();
  NamedObjects found = TRY(find_objects(pattern, access_, ListDepth::one_level));
  if (found.is_folder) {
    return error(ErrorKind::invalid, "'{}' is a folder", pattern)
        .hinted(fmt::format("name its objects: {}/*.txt", found.place.shown));
  }
  std::vector<PinnedObject> objects(found.objects.size());
  TRY(for_each_in_parallel(objects.size(), kAtATime, [&](std::size_t i) -> Status {
    const std::string& path = found.objects[i].path;
    objects[i] = {found.place.objects.get(), path, found.place.of(path),
                  TRY(describe_object(*found.place.objects, path))};
    return {};
  }));
  std::vector<std::string> paths;
  for (PinnedObject& object : objects) {
    paths.push_back(object.shown);
    pinned_.emplace(paths.back(), std::move(object));
  }
  stores_.push_back(std::move(found.place.objects));
  spent.list += real_clock()->now() - began;
  brought_ = false;
  return paths;
}

Status BucketFiles::open_cache() {
  if (cache_ == nullptr) cache_ = TRY(ObjectTiers::open(options_));
  return {};
}

Status BucketFiles::bring() {
  const std::lock_guard lock(mutex_);
  if (brought_) return {};
  const Seconds began = real_clock()->now();
  TRY(open_cache());
  std::vector<PinnedObject> all;
  for (const auto& [path, object] : pinned_) all.push_back(object);
  Bytes done;
  std::mutex telling;
  TRY(cache_->bring(all, kAtATime, [&](Bytes more) {
    const std::lock_guard in_turn(telling);
    done += more;
    if (progress_) progress_("fetching", done);
  }));
  // Ends connections, and the threads of reads that lost a race: who builds a dataset forks.
  for (auto& [path, object] : pinned_) object.store = nullptr;
  stores_.clear();
  brought_ = true;
  spent.fetch += real_clock()->now() - began;
  return {};
}

std::optional<CacheCounts> BucketFiles::counts() const {
  const std::lock_guard lock(mutex_);
  if (cache_ == nullptr) return std::nullopt;
  return cache_->counts();
}

Result<std::string> BucketFiles::file_of(std::string_view path) {
  const auto found = pinned_.find(path);
  if (found == pinned_.end()) return std::string(path.substr(path.starts_with('/') ? 1 : 0));
  TRY(bring());
  return TRY(cache_->file_of(found->second)).substr(1);
}

Status BucketFiles::read(std::string_view path, std::int64_t offset, std::span<std::byte> into) {
  return root_->read(TRY(file_of(path)), offset, into);
}

Result<Bytes> BucketFiles::size(std::string_view path) {
  const auto found = pinned_.find(path);
  return found != pinned_.end() ? Result<Bytes>(found->second.facts.size) : root_->size(TRY(file_of(path)));
}

Result<bool> BucketFiles::exists(std::string_view path) {
  return pinned_.contains(path) ? Result<bool>(true) : root_->exists(TRY(file_of(path)));
}

Result<std::vector<std::string>> BucketFiles::list(std::string_view dir) { return root_->list(TRY(file_of(dir))); }

Result<std::unique_ptr<ReadableFile>> BucketFiles::open_to_read(std::string_view path) {
  return systole::open_to_read(*root_, TRY(file_of(path)));
}

Result<std::optional<Hash128>> BucketFiles::known_hash(std::string_view path) {
  const auto found = pinned_.find(path);
  if (found == pinned_.end()) return std::optional<Hash128>();
  const std::lock_guard lock(mutex_);
  TRY(open_cache());
  return cache_->known_hash(found->second);
}

}  // namespace systole
