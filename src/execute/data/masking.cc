#include "execute/data/masking.h"

#include <array>

#include "ground/base/hash.h"
#include "ground/base/philox.h"

namespace systole {

std::int64_t mask_row(const Masking& masking, std::int64_t epoch, std::int64_t row,
                      std::span<const std::int32_t> segments, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> labels) {
  const std::uint64_t key = hash64("systole masking", masking.seed) ^ static_cast<std::uint64_t>(epoch);
  const auto choices = static_cast<std::uint64_t>(masking.end - masking.first);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    labels[i] = -1;
    if (segments[i] == 0 || tokens[i] == masking.eos) continue;
    const PhiloxBlock bits = philox(key, philox_counter(i, static_cast<std::uint64_t>(row)));
    if (static_cast<double>(uniform_f32(bits[0])) >= masking.share) continue;
    labels[i] = tokens[i];
    ++count;
    const auto which = static_cast<double>(uniform_f32(bits[1]));
    if (which < masking.hidden) {
      tokens[i] = kMaskToken;
    } else if (which < masking.hidden + masking.random) {
      tokens[i] = masking.first + static_cast<std::int32_t>((bits[2] * choices) >> 32);
    }
  }
  return count;
}

}  // namespace systole
