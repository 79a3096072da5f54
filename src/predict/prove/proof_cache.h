#pragma once
// Proofs that were made before, by what they were made of: a folder of small files KEY.json, each a line with the hash
// of what follows it, and the proof. Written whole or not at all; a file that does not hold its hash, or is no proof,
// is removed and not believed. When the folder holds more than its limit the oldest proofs go.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/store/store.h"
#include "predict/prove/proof.h"

namespace systole::prove {

// $XDG_CACHE_HOME/systole/prove, else $HOME/.cache/systole/prove; "" without both. Null: a variable that is not set.
std::string cache_folder(const char* xdg_cache_home, const char* home);

inline constexpr Bytes kCacheLimit{64 << 20};

class ProofCache {
 public:
  // `store` is rooted at the folder and borrowed.
  explicit ProofCache(Store& store, Bytes limit = kCacheLimit) : store_(store), limit_(limit) {}

  // Nothing where there is none that can be believed.
  std::optional<Proof> find(const std::string& key);
  // Errors: io, no_space.
  Status keep(const std::string& key, const Proof& proof);

  struct Entry {
    std::string key;
    Bytes size;
    Proof proof;
  };
  // The newest first. Errors: io.
  Result<std::vector<Entry>> list();

 private:
  std::optional<Entry> read(const std::string& file);

  Store& store_;
  Bytes limit_;
};

}  // namespace systole::prove
