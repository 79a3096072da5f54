#include "execute/data/formats/seen_texts.h"

#include <unordered_set>

#include "ground/base/hash.h"

namespace systole {

struct HashOfHash {
  std::size_t operator()(const Hash128& hash) const { return static_cast<std::size_t>(hash.low); }
};
struct SeenTexts::Set {
  std::unordered_set<Hash128, HashOfHash> hashes;
};
SeenTexts::SeenTexts() : set_(std::make_unique<Set>()) {}
SeenTexts::~SeenTexts() = default;
bool SeenTexts::add(std::string_view text) { return set_->hashes.insert(hash128(text)).second; }

}  // namespace systole
