#include "ground/store/testing/journal.h"

#include <algorithm>
#include <set>

#include "ground/base/philox.h"

namespace systole {
namespace {

const InodePtr& happened_in(const NameChange& change) {
  return change.set.folder ? change.set.folder : change.erased.folder;
}

// Removes from `earlier` the names that `later` overrides.
void supersede(NameChange& earlier, const NameChange& later) {
  for (Name* name : {&earlier.set, &earlier.erased}) {
    if (name->folder && (*name == later.set || *name == later.erased)) *name = {};
  }
}

std::vector<std::byte> torn(const std::vector<std::byte>& safe, const std::vector<std::byte>& live,
                            PhiloxStream& random) {
  const bool appended = live.size() >= safe.size() && std::equal(safe.begin(), safe.end(), live.begin());
  const std::size_t kept = appended ? safe.size() : 0;
  const std::uint64_t way = random.below(4);
  if (way == 0) return safe;
  std::vector<std::byte> bytes = live;
  const std::size_t cut = kept + static_cast<std::size_t>(random.below(live.size() - kept + 1));
  if (way == 1) bytes.resize(cut);
  if (way == 2) std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.end(), std::byte{0});
  return bytes;
}

void must(const Status& status) { status.value(); }

}  // namespace

Journal::Safe& Journal::safe(SafeMap& map, const InodePtr& inode) {
  Safe& found = map[inode.get()];
  found.inode = inode;
  return found;
}

void Journal::sync_file(const InodePtr& file) {
  Safe& state = safe(safe_, file);
  const std::size_t before = state.bytes.size();
  state.bytes = file->bytes;
  for (std::size_t at = before; at < std::min(state.lost_until, state.bytes.size()); ++at)
    state.bytes[at] = std::byte{0};
}

void Journal::fail_sync(const InodePtr& file) { safe(safe_, file).lost_until = file->bytes.size(); }

void Journal::flip(const InodePtr& file, std::size_t byte, std::byte mask) {
  Safe& state = safe(safe_, file);
  if (byte < state.bytes.size()) state.bytes[byte] ^= mask;
}

void Journal::apply_safe(SafeMap& map, const NameChange& change) {
  if (change.erased.folder) safe(map, change.erased.folder).entries.erase(change.erased.leaf);
  if (change.set.folder) safe(map, change.set.folder).entries[change.set.leaf] = change.target;
}

void Journal::sync_dir(const InodePtr& dir) {
  std::vector<NameChange> rest;
  for (NameChange& change : pending_) {
    if (happened_in(change) != dir) {
      rest.push_back(std::move(change));
      continue;
    }
    for (NameChange& earlier : rest) supersede(earlier, change);
    apply_safe(safe_, change);
  }
  std::erase_if(rest, [](const NameChange& change) { return !happened_in(change); });
  pending_ = std::move(rest);
}

std::unique_ptr<Store> Journal::survivor(const InodePtr& root, Unsynced mode, std::uint64_t seed) const {
  SafeMap disk = safe_;
  PhiloxStream random(seed);
  for (const NameChange& change : pending_) {
    if (mode == Unsynced::kept || (mode == Unsynced::torn && random.below(2) == 1)) apply_safe(disk, change);
  }
  std::unique_ptr<Store> store = make_memory_store();
  // A torn subset of renames may form a cycle of folders; it is dropped, as fsck would drop it.
  std::set<const Inode*> above;
  const auto copy = [&](const auto& self, const InodePtr& dir, const std::string& prefix) -> void {
    if (!above.insert(dir.get()).second) return;
    for (const auto& [name, inode] : safe(disk, dir).entries) {
      const std::string path = prefix + name;
      if (inode->folder) {
        must(store->make_dirs(path));
        self(self, inode, path + "/");
        continue;
      }
      const std::vector<std::byte>& saved = safe(disk, inode).bytes;
      std::unique_ptr<WritableFile> file = store->create(path).value();
      must(file->append(mode == Unsynced::lost   ? saved
                        : mode == Unsynced::kept ? inode->bytes
                                                 : torn(saved, inode->bytes, random)));
    }
    above.erase(dir.get());
  };
  copy(copy, root, "");
  return store;
}

}  // namespace systole
