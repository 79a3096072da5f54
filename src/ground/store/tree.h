#pragma once
// Folders and files in memory, as in POSIX: names point to inodes, so an open file lives on when its name is replaced
// or removed. `memory` and `faulty` are built on it; `faulty` also observes the name changes. Not thread-safe: the
// stores lock.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "ground/store/store.h"

namespace systole {

struct Inode {
  bool folder = false;
  std::vector<std::byte> bytes;                                        // of a file
  std::map<std::string, std::shared_ptr<Inode>, std::less<>> entries;  // of a folder
};
using InodePtr = std::shared_ptr<Inode>;

struct Name {
  InodePtr folder;  // null: no change
  std::string leaf;
  bool operator==(const Name&) const = default;
};

// One atomic change of names: `set` gets `target`, and `erased` is removed. A rename does both.
struct NameChange {
  Name set;
  InodePtr target;
  Name erased;
};

class Tree {
 public:
  using Listener = std::function<void(const NameChange&)>;
  explicit Tree(Listener listener = {});

  const InodePtr& root() const { return root_; }
  Result<InodePtr> open_to_write(std::string_view path);  // a file, made empty if absent
  Result<InodePtr> find_file(std::string_view path) const;
  Result<InodePtr> find_dir(std::string_view dir) const;
  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) const;
  Result<bool> exists(std::string_view path) const;
  Result<std::vector<std::string>> list(std::string_view dir) const;
  Status make_dirs(std::string_view dir);
  Status rename(std::string_view from, std::string_view to);
  Status link(std::string_view from, std::string_view to);
  Status remove(std::string_view path);
  Status remove_dir(std::string_view dir);

 private:
  Result<Name> place(std::string_view path) const;  // the folder must exist, the leaf need not
  void change(NameChange change);

  InodePtr root_;
  Listener listener_;
};

void apply(const NameChange& change);  // applies it to the live entries

// The locks on the folders of one tree. Thread-safe.
class TreeLocks {
 public:
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir);  // Errors: busy

 private:
  struct Held {
    std::mutex mutex;
    std::set<std::string, std::less<>> dirs;
  };
  class Lock;
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

}  // namespace systole
