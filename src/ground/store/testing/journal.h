#pragma once
// What a disk would hold after a power cut: durable bytes and names, and pending changes.
//
// A file's durable bytes are those at its last sync. A change of names is durable after a sync of its folder (for a
// rename: the target's folder). Until then it may be lost independently of other changes, in any order. A failed sync
// loses the bytes it should have saved for good, as Linux does: a later sync that succeeds covers only what came after.

#include <map>

#include "ground/store/tree.h"

namespace systole {

// The outcome of pending changes: all lost; all kept; or a seeded mix: any subset of the name changes, and of each
// file's bytes none, all, a prefix, or a tail of zeros.
enum class Unsynced { lost, kept, torn };

class Journal {
 public:
  void changed(const NameChange& change) { pending_.push_back(change); }
  void sync_file(const InodePtr& file);
  void fail_sync(const InodePtr& file);
  void sync_dir(const InodePtr& dir);
  void flip(const InodePtr& file, std::size_t byte, std::byte mask);  // in the durable bytes, if it is among them

  // The tree under `root` after the power cut, in a plain memory store.
  std::unique_ptr<Store> survivor(const InodePtr& root, Unsynced mode, std::uint64_t seed) const;

 private:
  struct Safe {
    InodePtr inode;  // held, so that its address is not reused
    std::vector<std::byte> bytes;
    std::size_t lost_until = 0;  // bytes before it and after the durable ones were lost by a failed sync
    std::map<std::string, InodePtr> entries;
  };
  using SafeMap = std::map<const Inode*, Safe>;

  static Safe& safe(SafeMap& map, const InodePtr& inode);
  static void apply_safe(SafeMap& map, const NameChange& change);

  SafeMap safe_;
  std::vector<NameChange> pending_;  // in order
};

}  // namespace systole
