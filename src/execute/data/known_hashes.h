#pragma once
// A store that knows the hash of a file's bytes without reading them, because it has had them before.

#include <optional>
#include <string_view>

#include "ground/base/hash.h"
#include "ground/base/result.h"

namespace systole {

class KnowsHashes {
 public:
  virtual ~KnowsHashes() = default;
  // Nothing: they have to be read.
  virtual Result<std::optional<Hash128>> known_hash(std::string_view path) = 0;
};

}  // namespace systole
