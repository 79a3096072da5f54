#include <cmath>

#include "execute/data/text_source.h"
#include "ground/base/hash.h"

namespace systole {

bool is_held_out(std::string_view document, double fraction, std::uint64_t seed) {
  CHECK(fraction >= 0 && fraction < 1, "a fraction of {}", fraction);
  return hash64(document, seed) < static_cast<std::uint64_t>(std::ldexp(fraction, 64));
}

}  // namespace systole
