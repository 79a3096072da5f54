#include "ground/store/tree.h"

#include <cerrno>
#include <cstring>

#include "ground/base/os_error.h"
#include "ground/store/path.h"

namespace systole {
namespace {

InodePtr child(const InodePtr& folder, std::string_view name) {
  const auto found = folder->entries.find(name);
  return found == folder->entries.end() ? nullptr : found->second;
}

// The inode at the end of the path; null if absent.
InodePtr walk(InodePtr at, std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (!at || !at->folder) return nullptr;
    at = child(at, name);
  }
  return at;
}

bool contains(const InodePtr& tree, const InodePtr& wanted) {
  if (tree == wanted) return true;
  for (const auto& [name, inode] : tree->entries) {
    if (contains(inode, wanted)) return true;
  }
  return false;
}

}  // namespace

void apply(const NameChange& change) {
  if (change.erased.folder) change.erased.folder->entries.erase(change.erased.leaf);
  if (change.set.folder) change.set.folder->entries[change.set.leaf] = change.target;
}

Tree::Tree(Listener listener) : root_(std::make_shared<Inode>()), listener_(std::move(listener)) {
  root_->folder = true;
}

void Tree::change(NameChange change) {
  apply(change);
  if (listener_) listener_(change);
}

Result<Name> Tree::place(std::string_view path) const {
  std::vector<std::string> names = TRY(split_file_path(path));
  InodePtr folder = walk(root_, std::span(names).first(names.size() - 1));
  if (!folder) return os_error(ENOENT, "find the folder of", path);
  if (!folder->folder) return os_error(ENOTDIR, "find the folder of", path);
  return Name{std::move(folder), std::move(names.back())};
}

Result<InodePtr> Tree::open_to_write(std::string_view path) {
  Name name = TRY(place(path));
  InodePtr inode = child(name.folder, name.leaf);
  if (inode && inode->folder) return os_error(EISDIR, "create", path);
  if (!inode) {
    inode = std::make_shared<Inode>();
    change({std::move(name), inode, {}});
  }
  return inode;
}

Result<InodePtr> Tree::find_file(std::string_view path) const {
  InodePtr inode = walk(root_, TRY(split_file_path(path)));
  if (!inode) return os_error(ENOENT, "read", path);
  if (inode->folder) return os_error(EISDIR, "read", path);
  return inode;
}

Result<InodePtr> Tree::find_dir(std::string_view dir) const {
  InodePtr inode = walk(root_, TRY(split_dir_path(dir)));
  if (!inode) return os_error(ENOENT, "open the folder", dir);
  if (!inode->folder) return os_error(ENOTDIR, "open the folder", dir);
  return inode;
}

Status Tree::read(std::string_view path, std::int64_t offset, std::span<std::byte> into) const {
  const InodePtr inode = TRY(find_file(path));
  CHECK(offset >= 0, "read of '{}' at {}", path, offset);
  const std::size_t have = inode->bytes.size();
  const std::size_t from = std::min(static_cast<std::size_t>(offset), have);
  if (have - from < into.size()) {
    return error(ErrorKind::corrupt, "'{}' ends at byte {}, {} bytes too early", path, have,
                 into.size() - (have - from))
        .hinted("the file is truncated: restore it or make it again");
  }
  if (!into.empty()) std::memcpy(into.data(), inode->bytes.data() + from, into.size());
  return Done{};
}

Result<bool> Tree::exists(std::string_view path) const { return walk(root_, TRY(split_dir_path(path))) != nullptr; }

Result<std::vector<std::string>> Tree::list(std::string_view dir) const {
  const InodePtr folder = TRY(find_dir(dir));
  std::vector<std::string> names;
  for (const auto& [name, inode] : folder->entries) names.push_back(inode->folder ? name + "/" : name);
  std::sort(names.begin(), names.end());
  return names;
}

Status Tree::make_dirs(std::string_view dir) {
  InodePtr at = root_;
  for (const std::string& name : TRY(split_dir_path(dir))) {
    InodePtr next = child(at, name);
    if (next && !next->folder) {
      return error(ErrorKind::exists, "cannot create the folder '{}': a file of that name is there", dir);
    }
    if (!next) {
      next = std::make_shared<Inode>();
      next->folder = true;
      change({{at, name}, next, {}});
    }
    at = next;
  }
  return Done{};
}

Status Tree::rename(std::string_view from, std::string_view to) {
  const Name source = TRY(place(from));
  const Name target = TRY(place(to));
  const InodePtr inode = child(source.folder, source.leaf);
  const InodePtr old = child(target.folder, target.leaf);
  const std::string doing = fmt::format("rename '{}' to", from);
  if (!inode) return os_error(ENOENT, doing, to);
  if (inode == old) return Done{};
  if (old && old->folder && !inode->folder) return os_error(EISDIR, doing, to);
  if (old && !old->folder && inode->folder) return os_error(ENOTDIR, doing, to);
  if (old && !old->entries.empty()) return os_error(ENOTEMPTY, doing, to);
  if (inode->folder && contains(inode, target.folder)) return os_error(EINVAL, doing, to);
  change({target, inode, source});
  return Done{};
}

Status Tree::link(std::string_view from, std::string_view to) {
  const InodePtr inode = TRY(find_file(from));
  Name target = TRY(place(to));
  if (child(target.folder, target.leaf)) return os_error(EEXIST, fmt::format("link '{}' to", from), to);
  change({std::move(target), inode, {}});
  return Done{};
}

Status Tree::remove(std::string_view path) {
  const std::vector<std::string> names = TRY(split_file_path(path));
  const InodePtr folder = walk(root_, std::span(names).first(names.size() - 1));
  if (!folder || !folder->folder) return Done{};
  const InodePtr inode = child(folder, names.back());
  if (!inode) return Done{};
  if (!inode->entries.empty()) return os_error(ENOTEMPTY, "remove", path);
  change({{}, nullptr, {folder, names.back()}});
  return Done{};
}

Status Tree::remove_dir(std::string_view dir) {
  const InodePtr inode = walk(root_, TRY(split_file_path(dir)));
  return inode && inode->folder ? remove(dir) : Done{};
}

class TreeLocks::Lock : public FileLock {
 public:
  Lock(std::shared_ptr<Held> held, std::string dir) : held_(std::move(held)), dir_(std::move(dir)) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() override {
    const std::lock_guard lock(held_->mutex);
    held_->dirs.erase(dir_);
  }

 private:
  std::shared_ptr<Held> held_;
  std::string dir_;
};

Result<std::unique_ptr<FileLock>> TreeLocks::try_lock(std::string_view dir) {
  const std::lock_guard lock(held_->mutex);
  if (!held_->dirs.emplace(dir).second) return os_error(EWOULDBLOCK, "lock", dir);
  return std::unique_ptr<FileLock>(std::make_unique<Lock>(held_, std::string(dir)));
}

}  // namespace systole
