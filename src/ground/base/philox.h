#pragma once
// Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): the bits are a pure function of a key and a counter. So an element's random numbers can depend on its
// position instead of the order of calls. All functions are pure; a PhiloxStream belongs to one thread.

#include <array>
#include <cstdint>
#include <utility>

namespace systole {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// A 128-bit counter from two halves; word 0 is the lowest.
constexpr PhiloxBlock philox_counter(std::uint64_t low, std::uint64_t high = 0) {
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
          static_cast<std::uint32_t>(high >> 32)};
}

// 128 random bits of (key, counter).
constexpr PhiloxBlock philox(std::uint64_t key, PhiloxBlock counter) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// Uniform in [0, 1), a multiple of 2^-24, from the upper 24 bits.
constexpr float uniform_f32(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
// Uniform in [0, 1), a multiple of 2^-53.
constexpr double uniform_f64(std::uint32_t low, std::uint32_t high) {
  return static_cast<double>(((std::uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// Two independent standard normals from 64 uniform bits (Box and Muller 1958); always finite, at most 6.7 in magnitude.
std::pair<double, double> normal_pair(std::uint32_t bits0, std::uint32_t bits1);

// The bits of one key and stream in sequence, for uses without a position: shuffles in tests, sampling, seeds.
class PhiloxStream {
 public:
  explicit PhiloxStream(std::uint64_t key, std::uint64_t stream = 0) : key_(key), stream_(stream) {}

  std::uint32_t next_u32() {
    if (used_ == 4) {
      block_ = philox(key_, philox_counter(position_++, stream_));
      used_ = 0;
    }
    return block_[used_++];
  }
  std::uint64_t next_u64() {
    const std::uint64_t low = next_u32();
    return (std::uint64_t{next_u32()} << 32) | low;
  }
  double uniform() {
    const std::uint32_t low = next_u32();
    return uniform_f64(low, next_u32());
  }
  // Uniform in [0, bound), without bias. REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound: this many values would cause bias
    std::uint64_t bits = next_u64();
    while (bits < rejected) bits = next_u64();
    return bits % bound;
  }

 private:
  std::uint64_t key_, stream_, position_ = 0;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace systole
