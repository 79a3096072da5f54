#pragma once
// Folders and files in memory, as POSIX has them: names point to inodes, so a file that was opened lives on when its
// name is replaced or removed. `memory` and `faulty` are both made of it; `faulty` listens to the changes of names.
// Not thread-safe: the stores lock.

#include <functional>
#include <map>
#include <memory>

#include "ground/store/store.h"

namespace systole {

struct Inode {
  bool folder = false;
  std::vector<std::byte> bytes;                                        // of a file
  std::map<std::string, std::shared_ptr<Inode>, std::less<>> entries;  // of a folder
};
using InodePtr = std::shared_ptr<Inode>;

struct Name {
  InodePtr folder;  // null: no such change
  std::string leaf;
  bool operator==(const Name&) const = default;
};

// One atomic change of names: `target` appears under `set`, and `erased` goes. A rename is both.
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
  Status remove(std::string_view path);

 private:
  Result<Name> place(std::string_view path) const;  // the folder exists, the leaf need not
  void change(NameChange change);

  InodePtr root_;
  Listener listener_;
};

void apply(const NameChange& change);  // to the live entries

}  // namespace systole
