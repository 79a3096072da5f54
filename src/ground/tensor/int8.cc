#include "ground/tensor/int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace systole {

float quantize_row(std::span<const float> x, std::span<std::int8_t> q) {
  constexpr float kSmallest = 0x1p-100F;  // below, 127 / top may overflow
  // Sizes of floats are in the order of their bits; from infinity's on, a value is not finite.
  std::uint32_t top_bits = 0;
  for (const float value : x) top_bits = std::max(top_bits, std::bit_cast<std::uint32_t>(value) & 0x7fffffffU);
  const float top = std::bit_cast<float>(top_bits);
  const bool finite = top_bits < 0x7f800000U;
  if (!finite || top < kSmallest) {
    std::ranges::fill(q, std::int8_t{0});
    return finite ? kSmallest / 127.0F : std::numeric_limits<float>::quiet_NaN();
  }
  const float inverse = 127.0F / top;
  for (std::size_t i = 0; i < x.size(); ++i) q[i] = static_cast<std::int8_t>(std::lrintf(x[i] * inverse));
  return top / 127.0F;
}

}  // namespace systole
