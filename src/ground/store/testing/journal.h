#pragma once
// What a disk would hold after a power cut: the bytes and names that were made safe, and the changes that were not.
//
// A file's safe bytes are those at its last sync. A change of names is safe when the folder it happened in (of a
// rename: the target's) was synced; until then it may be lost on its own, whatever order it came in. A failed sync
// loses the bytes it should have saved for good, as Linux does: a later sync that succeeds covers only what came after.

#include <map>

#include "ground/store/tree.h"

namespace systole {

// What becomes of that which was not made safe: nothing of it remains; all of it; or a seeded part: any subset of
// the changes of names, and of each file's bytes none, all, a prefix, or a tail of zeros.
enum class Unsynced { lost, kept, torn };

class Journal {
 public:
  void changed(const NameChange& change) { pending_.push_back(change); }
  void sync_file(const InodePtr& file);
  void fail_sync(const InodePtr& file);
  void sync_dir(const InodePtr& dir);
  void flip(const InodePtr& file, std::size_t byte, std::byte mask);  // in the safe bytes, if it is among them

  // The tree under `root` as it is after the cut, in a plain memory store.
  std::unique_ptr<Store> survivor(const InodePtr& root, Unsynced mode, std::uint64_t seed) const;

 private:
  struct Safe {
    InodePtr inode;  // held, so that its address stays its own
    std::vector<std::byte> bytes;
    std::size_t lost_until = 0;  // bytes before it and after the safe ones fell to a failed sync
    std::map<std::string, InodePtr> entries;
  };
  using SafeMap = std::map<const Inode*, Safe>;

  static Safe& safe(SafeMap& map, const InodePtr& inode);
  static void apply_safe(SafeMap& map, const NameChange& change);

  SafeMap safe_;
  std::vector<NameChange> pending_;  // in order
};

}  // namespace systole
