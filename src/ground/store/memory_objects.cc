// An object store in memory. A stored version is immutable, so readers share ownership of it without copying.

#include <cstring>
#include <map>
#include <mutex>

#include "ground/store/object_path.h"
#include "ground/store/object_store.h"
#include "ground/store/path.h"

namespace systole {
namespace {

struct Object {
  std::shared_ptr<const std::string> bytes;
  std::int64_t generation = 0;
};

struct State {
  std::mutex mutex;
  std::map<std::string, Object, std::less<>> objects;
  std::map<std::int64_t, std::pair<std::string, Bytes>> uploads;  // by number: path, bytes so far
  std::int64_t generations = 0, uploads_begun = 0;
};

Error absent(std::string_view path) { return error(ErrorKind::not_found, "there is no object '{}'", path); }

Result<Object> find(const State& state, std::string_view path) {
  TRY(check_object_path(path));
  const auto found = state.objects.find(path);
  if (found == state.objects.end()) return absent(path);
  return found->second;
}

Generation generation_of(const Object& object) { return {std::to_string(object.generation)}; }

Status check(const State& state, std::string_view path, const Precondition& when) {
  const auto found = state.objects.find(path);
  const bool there = found != state.objects.end();
  if (when.kind == Precondition::Kind::absent && there)
    return error(ErrorKind::exists, "the object '{}' is there already", path);
  if (when.kind == Precondition::Kind::generation && (!there || generation_of(found->second) != when.generation))
    return error(ErrorKind::busy, "the object '{}' is not the one that was read: another writer was faster", path);
  return {};
}

Result<Generation> put_in(State& state, std::string_view path, std::shared_ptr<const std::string> bytes,
                          const Precondition& when) {
  TRY(check(state, path, when));
  Object object{std::move(bytes), ++state.generations};
  Generation generation = generation_of(object);
  state.objects.insert_or_assign(std::string(path), std::move(object));
  return generation;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class MemoryUpload : public Upload {
 public:
  MemoryUpload(std::shared_ptr<State> state, std::string path) : state_(std::move(state)), path_(std::move(path)) {
    const std::lock_guard lock(state_->mutex);
    number_ = ++state_->uploads_begun;
    state_->uploads[number_] = {path_, Bytes()};
  }
  MemoryUpload(const MemoryUpload&) = delete;
  MemoryUpload& operator=(const MemoryUpload&) = delete;
  ~MemoryUpload() override { (void)abort(); }

  Status append(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(state_->mutex);
    CHECK(!over_, "append to the upload of '{}' after its end", path_);
    const auto open = state_->uploads.find(number_);
    if (open == state_->uploads.end()) return aborted();
    bytes_ += text_of(bytes);
    open->second.second += Bytes(bytes.size());
    return {};
  }

  Status complete(const Precondition& when, Durability durability) override {
    return complete_as(path_, when, durability);
  }

  Status complete_as(std::string_view path, const Precondition& when, Durability) override {
    const std::lock_guard lock(state_->mutex);
    CHECK(!over_, "the upload of '{}' is completed after its end", path_);
    if (!state_->uploads.contains(number_)) return aborted();
    TRY(check_object_path(path));
    TRY(put_in(*state_, path, std::make_shared<const std::string>(bytes_), when));
    over_ = true;
    state_->uploads.erase(number_);
    return {};
  }

  Status abort() override {
    const std::lock_guard lock(state_->mutex);
    over_ = true;
    state_->uploads.erase(number_);
    return {};
  }

 private:
  Error aborted() const { return error(ErrorKind::not_found, "the upload of '{}' was aborted", path_); }

  std::shared_ptr<State> state_;
  std::string path_, bytes_;
  std::int64_t number_ = 0;
  bool over_ = false;
};

class MemoryObjects : public ObjectStore {
 public:
  Result<Bytes> size(std::string_view path) override {
    const std::lock_guard lock(state_->mutex);
    return Bytes(TRY(find(*state_, path)).bytes->size());
  }

  Status get(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    const Object object = TRY(found(path));
    CHECK(offset >= 0, "read of '{}' at {}", path, offset);
    const std::size_t have = object.bytes->size(), from = std::min(static_cast<std::size_t>(offset), have);
    if (have - from < into.size()) {
      return error(ErrorKind::corrupt, "'{}' ends at byte {}, {} bytes too early", path, have,
                   into.size() - (have - from));
    }
    if (!into.empty()) std::memcpy(into.data(), object.bytes->data() + from, into.size());
    return {};
  }

  Result<Versioned> get_whole(std::string_view path, Bytes limit) override {
    const Object object = TRY(found(path));
    const Bytes size(object.bytes->size());
    if (size > limit) {
      return error(ErrorKind::does_not_fit, "'{}' has {} bytes and the limit for such an object is {}", path,
                   with_commas(size.count()), with_commas(limit.count()));
    }
    return Versioned{*object.bytes, generation_of(object)};
  }

  using ObjectStore::put;
  Result<Generation> put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                         Durability) override {
    TRY(check_object_path(path));
    auto copy = std::make_shared<const std::string>(text_of(bytes));
    const std::lock_guard lock(state_->mutex);
    return put_in(*state_, path, std::move(copy), when);
  }

  Result<std::unique_ptr<Upload>> start_upload(std::string_view path) override {
    TRY(check_object_path(path));
    return std::unique_ptr<Upload>(std::make_unique<MemoryUpload>(state_, std::string(path)));
  }

  Result<ObjectList> list(std::string_view prefix, ListDepth depth) override {
    TRY(split_dir_path(prefix));
    const std::lock_guard lock(state_->mutex);
    ObjectList listing;
    for (auto at = state_->objects.lower_bound(prefix); at != state_->objects.end(); ++at) {
      const std::string& path = at->first;
      if (!path.starts_with(prefix)) break;
      const std::size_t slash = depth == ListDepth::all ? path.npos : path.find('/', prefix.size());
      if (slash == path.npos) {
        listing.objects.push_back({path, Bytes(at->second.bytes->size())});
      } else if (std::string common = path.substr(0, slash + 1);
                 listing.prefixes.empty() || listing.prefixes.back() != common) {
        listing.prefixes.push_back(std::move(common));
      }
    }
    return listing;
  }

  Status remove(std::string_view path, const Precondition& when) override {
    TRY(check_object_path(path));
    if (when.kind == Precondition::Kind::absent)
      return error(ErrorKind::invalid, "what is absent cannot be removed: '{}'", path);
    const std::lock_guard lock(state_->mutex);
    TRY(check(*state_, path, when));
    const auto there = state_->objects.find(path);
    if (there != state_->objects.end()) state_->objects.erase(there);
    return {};
  }

  Result<Bytes> abort_uploads(std::string_view prefix) override {
    const std::string_view folder = TRY(folder_of_prefix(prefix));
    const std::string under = folder.empty() ? "" : fmt::format("{}/", folder);
    const std::lock_guard lock(state_->mutex);
    Bytes freed;
    std::erase_if(state_->uploads, [&](const auto& upload) {
      if (!upload.second.first.starts_with(under)) return false;
      freed += upload.second.second;
      return true;
    });
    return freed;
  }

  Status settle(std::string_view dir) override {
    TRY(folder_of_prefix(dir));
    return {};
  }

 private:
  Result<Object> found(std::string_view path) const {
    const std::lock_guard lock(state_->mutex);
    return find(*state_, path);
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

std::unique_ptr<ObjectStore> make_memory_objects() { return std::make_unique<MemoryObjects>(); }

}  // namespace systole
