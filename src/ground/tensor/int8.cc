#include "ground/tensor/int8.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace systole {
namespace {

// Compiled for each instruction set: the loops become vectors.
[[gnu::always_inline]] inline float quantize(std::span<const float> x, std::span<std::int8_t> q) {
  constexpr float kSmallest = 0x1p-100F;  // below, 127 / top may overflow
  // Sizes of floats are in the order of their bits; from infinity's on, a value is not finite.
  std::int32_t top_bits = 0;
  for (const float value : x) top_bits = std::max(top_bits, std::bit_cast<std::int32_t>(value) & 0x7fffffff);
  const float top = std::bit_cast<float>(top_bits);
  const bool finite = top_bits < 0x7f800000;
  if (!finite || top < kSmallest) {
    std::ranges::fill(q, std::int8_t{0});
    return finite ? kSmallest / 127.0F : std::numeric_limits<float>::quiet_NaN();
  }
  const float inverse = 127.0F / top;
  // A sum with 1.5 · 2^23 has the nearest integer, of two the even one, in its lowest bits.
  for (std::size_t i = 0; i < x.size(); ++i)
    q[i] = static_cast<std::int8_t>(std::bit_cast<std::int32_t>(x[i] * inverse + 0x1.8p23F));
  return top / 127.0F;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) float quantize_avx2(std::span<const float> x, std::span<std::int8_t> q) {
  return quantize(x, q);
}
#endif

}  // namespace

float quantize_row(std::span<const float> x, std::span<std::int8_t> q) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return quantize_avx2(x, q);
#endif
  return quantize(x, q);
}

}  // namespace systole
