#pragma once
// A cache of values that can be recomputed, under keys that determine them. A folder with one file per key and a limit
// on its size in bytes. Eviction is LRU.
//
//   KEY            the XXH3 hash of what follows in 32 hexadecimal digits, a line feed, the value
//   KEY.….part     a file being written, under a name unique to its writer
//   used           the keys in the order in which they were kept or found, one per line, the most recent last
//
// A file that does not match its hash is removed and counts as absent. So a crash, a full disk or another process can
// only cost a recomputation. Processes may share the folder without coordination: files appear by a rename, and lost
// lines of `used` only change the eviction order.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/store/store.h"

namespace systole {

class ContentCache {
 public:
  // `store` is rooted at the folder and borrowed. Files that do not end in `ending` do not belong to the cache.
  ContentCache(Store& store, Bytes limit, std::string ending);

  // Nothing if the value is absent or corrupt.
  std::optional<std::string> find(const std::string& key);
  // The same, but does not count as a use.
  std::optional<std::string> look(const std::string& key);

  // Evicts to make room, then writes. A value larger than the limit is not kept. REQUIRES: `key` is a file name.
  // Errors: io, no_space; then only evicted values are lost.
  Status keep(const std::string& key, std::string_view value);

  void remove(const std::string& key);  // fine if absent

  struct Entry {
    std::string key;
    Bytes size;  // of its file
  };
  // Most recently used first. Errors: io.
  Result<std::vector<Entry>> list();

 private:
  Status make_room(Bytes needed);
  void note_use(const std::string& key);
  std::vector<std::string> used();  // each key once, the most recent last

  Store& store_;
  Bytes limit_;
  std::string ending_;
};

}  // namespace systole
