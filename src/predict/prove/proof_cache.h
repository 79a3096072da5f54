#pragma once
// Caches proofs by what they depend on: a ContentCache of small files KEY.json.

#include <optional>
#include <string>
#include <vector>

#include "ground/store/content_cache.h"
#include "predict/prove/proof.h"

namespace systole::prove {

// $XDG_CACHE_HOME/systole/prove, else $HOME/.cache/systole/prove; "" without both. Null: the variable is not set.
std::string cache_folder(const char* xdg_cache_home, const char* home);

inline constexpr Bytes kCacheLimit{64 << 20};

class ProofCache {
 public:
  // `store` is rooted at the folder and borrowed.
  explicit ProofCache(Store& store, Bytes limit = kCacheLimit);

  // Nothing: there is no proof, or it is damaged.
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
  ContentCache files_;
};

}  // namespace systole::prove
