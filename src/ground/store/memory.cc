// A store in memory: the tree behind a lock. A file shares ownership of the tree's state, so it may outlive the store.

#include <limits>
#include <mutex>

#include "ground/store/store.h"
#include "ground/store/tree.h"

namespace systole {
namespace {

struct State {
  std::mutex mutex;
  Tree tree;
  TreeLocks locks;
};

class MemoryFile : public WritableFile {
 public:
  MemoryFile(std::shared_ptr<State> state, InodePtr inode) : state_(std::move(state)), inode_(std::move(inode)) {}

  Status append(std::span<const std::byte> bytes) override {
    CHECK(open_, "append after close");
    const std::lock_guard lock(state_->mutex);
    inode_->bytes.insert(inode_->bytes.end(), bytes.begin(), bytes.end());
    return Done{};
  }
  Status sync() override {
    CHECK(open_, "sync after close");
    return Done{};
  }
  Status close() override {
    open_ = false;
    return Done{};
  }

 private:
  std::shared_ptr<State> state_;
  InodePtr inode_;
  bool open_ = true;
};

class MemoryStore : public Store {
 public:
  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override { return open(path, true); }
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override { return open(path, false); }

  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.read(path, offset, into);
  }
  Result<Bytes> size(std::string_view path) override {
    const std::lock_guard lock(state_->mutex);
    return Bytes(TRY(state_->tree.find_file(path))->bytes.size());
  }
  Result<bool> exists(std::string_view path) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.exists(path);
  }
  Result<std::vector<std::string>> list(std::string_view dir) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.list(dir);
  }
  Status make_dirs(std::string_view dir) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.make_dirs(dir);
  }
  Status rename(std::string_view from, std::string_view to) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.rename(from, to);
  }
  Status link(std::string_view from, std::string_view to) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.link(from, to);
  }
  Status remove(std::string_view path) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.remove(path);
  }
  Status remove_dir(std::string_view dir) override {
    const std::lock_guard lock(state_->mutex);
    return state_->tree.remove_dir(dir);
  }
  Status sync_dir(std::string_view dir) override {
    const std::lock_guard lock(state_->mutex);
    TRY(state_->tree.find_dir(dir));
    return Done{};
  }
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) override {
    const std::lock_guard lock(state_->mutex);
    TRY(state_->tree.find_dir(dir));
    return state_->locks.try_lock(dir);
  }
  Result<Bytes> free_space() override { return Bytes(std::numeric_limits<std::int64_t>::max()); }

 private:
  Result<std::unique_ptr<WritableFile>> open(std::string_view path, bool truncate) {
    const std::lock_guard lock(state_->mutex);
    InodePtr inode = TRY(state_->tree.open_to_write(path));
    if (truncate) inode->bytes.clear();
    return std::unique_ptr<WritableFile>(std::make_unique<MemoryFile>(state_, std::move(inode)));
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

std::unique_ptr<Store> make_memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace systole
