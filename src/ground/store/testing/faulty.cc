#include "ground/store/testing/faulty.h"

#include <cerrno>
#include <limits>
#include <mutex>

#include "ground/base/os_error.h"

namespace systole {
namespace {

std::int64_t bytes_under(const InodePtr& inode) {
  auto total = static_cast<std::int64_t>(inode->bytes.size());
  for (const auto& [name, below] : inode->entries) total += bytes_under(below);
  return total;
}

std::span<const std::byte> first(std::span<const std::byte> bytes, std::int64_t count) {
  return bytes.first(std::min(bytes.size(), static_cast<std::size_t>(std::max<std::int64_t>(count, 0))));
}

void extend(const InodePtr& inode, std::span<const std::byte> bytes) {
  inode->bytes.insert(inode->bytes.end(), bytes.begin(), bytes.end());
}

}  // namespace

class FaultyStore::Disk {
 public:
  Disk() : tree([this](const NameChange& change) { journal.changed(change); }) {}

  // Runs `act` as the next changing call. `otherwise` is what still happens if the call fails or the process dies
  // before it.
  template <typename Act, typename Otherwise>
  auto change(std::string call, Act act, Otherwise otherwise) -> decltype(act()) {
    const std::lock_guard lock(mutex);
    alive();
    calls.push_back(std::move(call));
    const Fault* fault = due();
    if (fault && fault->kind != Fault::Kind::dies_after) {
      otherwise(*fault);
      if (fault->kind == Fault::Kind::dies_before) die();
      return os_error(fault->number, calls.back());
    }
    auto result = act();
    if (fault) die();
    return result;
  }
  template <typename Act>
  auto change(std::string call, Act act) -> decltype(act()) {
    return change(std::move(call), act, [](const Fault&) {});
  }

  void alive() const {
    if (crashed) throw SimulatedCrash();
  }
  [[noreturn]] void die() {
    crashed = true;
    throw SimulatedCrash();
  }
  std::int64_t room() const { return space - bytes_under(tree.root()); }

  mutable std::mutex mutex;
  Journal journal;
  Tree tree;
  TreeLocks locks;
  std::vector<Fault> faults;
  std::vector<ReadFault> read_faults;
  std::vector<std::string> calls;
  std::int64_t reads = 0;
  std::int64_t space = std::numeric_limits<std::int64_t>::max();
  bool crashed = false;

 private:
  const Fault* due() const {
    const auto now = static_cast<std::int64_t>(calls.size());
    for (const Fault& fault : faults) {
      if (fault.call == now || (fault.onwards && fault.call < now)) return &fault;
    }
    return nullptr;
  }
};

class FaultyStore::File : public WritableFile {
 public:
  File(std::shared_ptr<Disk> disk, InodePtr inode, std::string_view path)
      : disk_(std::move(disk)), inode_(std::move(inode)), path_(path) {}

  Status append(std::span<const std::byte> bytes) override {
    CHECK(open_, "append to '{}' after close", path_);
    const auto whole = [&]() -> Status {
      const std::span<const std::byte> fits = first(bytes, disk_->room());
      extend(inode_, fits);
      if (fits.size() < bytes.size()) return os_error(ENOSPC, "write", path_);
      return Done{};
    };
    const auto part = [&](const Fault& fault) { extend(inode_, first(bytes, fault.landed)); };
    return disk_->change("append " + path_, whole, part);
  }

  Status sync() override {
    CHECK(open_, "sync of '{}' after close", path_);
    const auto whole = [&]() -> Status {
      disk_->journal.sync_file(inode_);
      return Done{};
    };
    return disk_->change("sync " + path_, whole, [&](const Fault&) { disk_->journal.fail_sync(inode_); });
  }

  Status close() override {
    if (!std::exchange(open_, false)) return Done{};
    return disk_->change("close " + path_, []() -> Status { return Done{}; });
  }

 private:
  std::shared_ptr<Disk> disk_;
  InodePtr inode_;
  std::string path_;
  bool open_ = true;
};

FaultyStore::FaultyStore() : disk_(std::make_shared<Disk>()) {}

FaultyStore::FaultyStore(Store& initial) : FaultyStore() {
  copy_tree(initial, *this).value();
  disk_->calls.clear();
}

FaultyStore::~FaultyStore() = default;

void FaultyStore::inject(Fault fault) {
  const std::lock_guard lock(disk_->mutex);
  disk_->faults.push_back(fault);
}

void FaultyStore::inject(ReadFault fault) {
  const std::lock_guard lock(disk_->mutex);
  disk_->read_faults.push_back(fault);
}

void FaultyStore::clear_faults() {
  const std::lock_guard lock(disk_->mutex);
  disk_->faults.clear();
  disk_->read_faults.clear();
}

void FaultyStore::limit_space(Bytes limit) {
  const std::lock_guard lock(disk_->mutex);
  disk_->space = limit.count();
}

Status FaultyStore::flip_bit(std::string_view path, std::int64_t byte, int bit) {
  const std::lock_guard lock(disk_->mutex);
  const InodePtr inode = TRY(disk_->tree.find_file(path));
  const auto mask = static_cast<std::byte>(1 << (bit & 7));
  CHECK(byte >= 0 && byte < static_cast<std::int64_t>(inode->bytes.size()), "no byte {} in '{}'", byte, path);
  inode->bytes[static_cast<std::size_t>(byte)] ^= mask;
  disk_->journal.flip(inode, static_cast<std::size_t>(byte), mask);
  return Done{};
}

std::int64_t FaultyStore::changing_calls() const {
  const std::lock_guard lock(disk_->mutex);
  return static_cast<std::int64_t>(disk_->calls.size());
}

std::int64_t FaultyStore::reads() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->reads;
}

std::vector<std::string> FaultyStore::calls() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->calls;
}

bool FaultyStore::crashed() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->crashed;
}

std::unique_ptr<Store> FaultyStore::survivor(Unsynced mode, std::uint64_t seed) const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->journal.survivor(disk_->tree.root(), mode, seed);
}

Result<std::unique_ptr<WritableFile>> FaultyStore::create(std::string_view path) {
  return disk_->change(fmt::format("create {}", path), [&]() -> Result<std::unique_ptr<WritableFile>> {
    InodePtr inode = TRY(disk_->tree.open_to_write(path));
    inode->bytes.clear();
    return std::unique_ptr<WritableFile>(std::make_unique<File>(disk_, std::move(inode), path));
  });
}

Result<std::unique_ptr<WritableFile>> FaultyStore::append_to(std::string_view path) {
  return disk_->change(fmt::format("append_to {}", path), [&]() -> Result<std::unique_ptr<WritableFile>> {
    return std::unique_ptr<WritableFile>(std::make_unique<File>(disk_, TRY(disk_->tree.open_to_write(path)), path));
  });
}

Status FaultyStore::read(std::string_view path, std::int64_t offset, std::span<std::byte> into) {
  const std::lock_guard lock(disk_->mutex);
  disk_->alive();
  const std::int64_t now = ++disk_->reads;
  TRY(disk_->tree.read(path, offset, into));
  for (const ReadFault& fault : disk_->read_faults) {
    if (fault.read != now) continue;
    if (fault.number != 0) return os_read_error(fault.number, "read", path);
    if (into.empty()) continue;
    const std::int64_t bit = fault.bit % (static_cast<std::int64_t>(into.size()) * 8);
    into[static_cast<std::size_t>(bit / 8)] ^= static_cast<std::byte>(1 << (bit % 8));
  }
  return Done{};
}

Result<Bytes> FaultyStore::size(std::string_view path) {
  const std::lock_guard lock(disk_->mutex);
  disk_->alive();
  return Bytes(TRY(disk_->tree.find_file(path))->bytes.size());
}

Result<bool> FaultyStore::exists(std::string_view path) {
  const std::lock_guard lock(disk_->mutex);
  disk_->alive();
  return disk_->tree.exists(path);
}

Result<std::vector<std::string>> FaultyStore::list(std::string_view dir) {
  const std::lock_guard lock(disk_->mutex);
  disk_->alive();
  return disk_->tree.list(dir);
}

Status FaultyStore::make_dirs(std::string_view dir) {
  return disk_->change(fmt::format("make_dirs {}", dir), [&] { return disk_->tree.make_dirs(dir); });
}

Status FaultyStore::rename(std::string_view from, std::string_view to) {
  return disk_->change(fmt::format("rename {} {}", from, to), [&] { return disk_->tree.rename(from, to); });
}

Status FaultyStore::link(std::string_view from, std::string_view to) {
  return disk_->change(fmt::format("link {} {}", from, to), [&] { return disk_->tree.link(from, to); });
}

Status FaultyStore::remove(std::string_view path) {
  return disk_->change(fmt::format("remove {}", path), [&] { return disk_->tree.remove(path); });
}

Status FaultyStore::remove_dir(std::string_view dir) {
  return disk_->change(fmt::format("remove_dir {}", dir), [&] { return disk_->tree.remove_dir(dir); });
}

Status FaultyStore::sync_dir(std::string_view dir) {
  return disk_->change(fmt::format("sync_dir {}", dir), [&]() -> Status {
    disk_->journal.sync_dir(TRY(disk_->tree.find_dir(dir)));
    return Done{};
  });
}

Result<std::unique_ptr<FileLock>> FaultyStore::try_lock(std::string_view dir) {
  const std::lock_guard lock(disk_->mutex);
  disk_->alive();
  TRY(disk_->tree.find_dir(dir));
  return disk_->locks.try_lock(dir);
}

Result<Bytes> FaultyStore::free_space() {
  const std::lock_guard lock(disk_->mutex);
  disk_->alive();
  return Bytes(std::max<std::int64_t>(disk_->room(), 0));
}

}  // namespace systole
