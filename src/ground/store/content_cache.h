#pragma once
// Values that can be made again, kept by a key that holds all that makes them: a folder of files, one a key, of no more
// bytes than its limit. What was used least lately goes first.
//
//   KEY            the XXH3 hash of what follows in 32 hexadecimal digits, a line feed, the value
//   KEY.….part     one that is being written, by a name that no other writer has
//   used           the keys in the order in which they were kept or found, a line each, the last used last
//
// A file that does not hold its hash is removed and not believed, so that whatever a crash, a full disk or another
// process leaves costs only making the value again. Processes may share the folder without asking each other: files
// appear by a rename, and what is lost of `used` only changes what goes first.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/store/store.h"

namespace systole {

class ContentCache {
 public:
  // `store` is rooted at the folder and borrowed; files that do not end in `ending` are not the cache's.
  ContentCache(Store& store, Bytes limit, std::string ending);

  // Nothing where there is none that can be believed.
  std::optional<std::string> find(const std::string& key);
  // The same, and it does not count as a use.
  std::optional<std::string> look(const std::string& key);

  // Makes room, then writes. A value that is larger than the limit is not kept. REQUIRES: `key` is a file's name.
  // Errors: io, no_space; all else that was kept is still there then, but for what made room.
  Status keep(const std::string& key, std::string_view value);

  void remove(const std::string& key);  // fine if absent

  struct Entry {
    std::string key;
    Bytes size;  // of its file
  };
  // Those used last come first. Errors: io.
  Result<std::vector<Entry>> list();

 private:
  Status make_room(Bytes needed);
  void note_use(const std::string& key);
  std::vector<std::string> used();  // each key once, the last used last

  Store& store_;
  Bytes limit_;
  std::string ending_;
};

}  // namespace systole
