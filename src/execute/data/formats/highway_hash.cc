#include "execute/data/formats/highway_hash.h"

#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace systole {
namespace {

constexpr std::size_t kPacket = 32;
constexpr HighwayKey kMul0{0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3};
constexpr HighwayKey kMul1{0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377};

using Lanes = std::array<std::uint64_t, 4>;
struct State {
  Lanes v0, v1, mul0, mul1;
};

std::uint64_t halves_swapped(std::uint64_t word) { return std::rotl(word, 32); }

// The last bytes of an input, fewer than 32, as a packet.
Lanes last_packet(std::span<const std::byte> rest) {
  std::array<std::byte, kPacket> packet{};
  const std::size_t whole_words = rest.size() & ~std::size_t{3}, beyond = rest.size() & 3;
  if (whole_words > 0) std::memcpy(packet.data(), rest.data(), whole_words);
  if ((rest.size() & 16) != 0) {
    std::memcpy(packet.data() + 28, rest.data() + rest.size() - 4, 4);
  } else if (beyond > 0) {
    const std::byte* tail = rest.data() + whole_words;
    packet[16] = tail[0];
    packet[17] = tail[beyond >> 1];
    packet[18] = tail[beyond - 1];
  }
  return std::bit_cast<Lanes>(packet);
}

State start(const HighwayKey& key) {
  State s{.v0 = {}, .v1 = {}, .mul0 = kMul0, .mul1 = kMul1};
  for (std::size_t i = 0; i < 4; ++i) {
    s.v0[i] = kMul0[i] ^ key[i];
    s.v1[i] = kMul1[i] ^ halves_swapped(key[i]);
  }
  return s;
}

// Before the last packet: the number of its bytes goes into the state.
void add_size(State& s, std::size_t size) {
  for (std::uint64_t& lane : s.v0) lane += (std::uint64_t{size} << 32) + size;
  for (std::uint64_t& lane : s.v1) {
    const auto low = std::rotl(static_cast<std::uint32_t>(lane), static_cast<int>(size));
    const auto high = std::rotl(static_cast<std::uint32_t>(lane >> 32), static_cast<int>(size));
    lane = std::uint64_t{high} << 32 | low;
  }
}

// Moves the bytes of two lanes so that the well mixed middle ones come to the ends (section 3 of the paper).
void zipper_merge_and_add(std::uint64_t v1, std::uint64_t v0, std::uint64_t& add1, std::uint64_t& add0) {
  add0 += (((v0 & 0xff000000U) | (v1 & 0xff00000000U)) >> 24) |
          (((v0 & 0xff0000000000U) | (v1 & 0xff000000000000U)) >> 16) | (v0 & 0xff0000U) | ((v0 & 0xff00U) << 32) |
          ((v1 & 0xff00000000000000U) >> 8) | (v0 << 56);
  add1 += (((v1 & 0xff000000U) | (v0 & 0xff00000000U)) >> 24) | (v1 & 0xff0000U) | ((v1 & 0xff0000000000U) >> 16) |
          ((v1 & 0xff00U) << 24) | ((v0 & 0xff000000000000U) >> 8) | ((v1 & 0xffU) << 48) | (v0 & 0xff00000000000000U);
}

void update(State& s, const Lanes& packet) {
  for (std::size_t i = 0; i < 4; ++i) {
    s.v1[i] += s.mul0[i] + packet[i];
    s.mul0[i] ^= (s.v1[i] & 0xffffffffU) * (s.v0[i] >> 32);
    s.v0[i] += s.mul1[i];
    s.mul1[i] ^= (s.v0[i] & 0xffffffffU) * (s.v1[i] >> 32);
  }
  zipper_merge_and_add(s.v1[1], s.v1[0], s.v0[1], s.v0[0]);
  zipper_merge_and_add(s.v1[3], s.v1[2], s.v0[3], s.v0[2]);
  zipper_merge_and_add(s.v0[1], s.v0[0], s.v1[1], s.v1[0]);
  zipper_merge_and_add(s.v0[3], s.v0[2], s.v1[3], s.v1[2]);
}

std::uint64_t finish(State& s, std::span<const std::byte> rest) {
  if (!rest.empty()) {
    add_size(s, rest.size());
    update(s, last_packet(rest));
  }
  for (int round = 0; round < 4; ++round) {
    update(s, {halves_swapped(s.v0[2]), halves_swapped(s.v0[3]), halves_swapped(s.v0[0]), halves_swapped(s.v0[1])});
  }
  return s.v0[0] + s.v1[0] + s.mul0[0] + s.mul1[0];
}

#if defined(__x86_64__)
struct Vectors {
  __m256i v0, v1, mul0, mul1;
};

[[gnu::target("avx2")]] inline __m256i vector_of(const void* lanes) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(lanes));
}

[[gnu::target("avx2")]] inline void update_avx2(Vectors& s, __m256i packet) {
  const __m256i zipper =
      _mm256_set_epi64x(0x070806090D0A040B, 0x000F010E05020C03, 0x070806090D0A040B, 0x000F010E05020C03);
  s.v1 = _mm256_add_epi64(s.v1, _mm256_add_epi64(s.mul0, packet));
  s.mul0 = _mm256_xor_si256(s.mul0, _mm256_mul_epu32(s.v1, _mm256_srli_epi64(s.v0, 32)));
  s.v0 = _mm256_add_epi64(s.v0, s.mul1);
  s.mul1 = _mm256_xor_si256(s.mul1, _mm256_mul_epu32(s.v0, _mm256_srli_epi64(s.v1, 32)));
  s.v0 = _mm256_add_epi64(s.v0, _mm256_shuffle_epi8(s.v1, zipper));
  s.v1 = _mm256_add_epi64(s.v1, _mm256_shuffle_epi8(s.v0, zipper));
}

// add_size
[[gnu::target("avx2")]] inline void add_size_avx2(Vectors& s, std::size_t size) {
  s.v0 = _mm256_add_epi64(s.v0, _mm256_set1_epi32(static_cast<int>(size)));
  const __m128i left = _mm_cvtsi32_si128(static_cast<int>(size)),
                right = _mm_cvtsi32_si128(32 - static_cast<int>(size));
  s.v1 = _mm256_or_si256(_mm256_sll_epi32(s.v1, left), _mm256_srl_epi32(s.v1, right));
}

[[gnu::target("avx2")]] std::uint64_t highway_hash64_avx2(std::span<const std::byte> bytes, const HighwayKey& key) {
  const State begin = start(key);
  Vectors s{vector_of(begin.v0.data()), vector_of(begin.v1.data()), vector_of(begin.mul0.data()),
            vector_of(begin.mul1.data())};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kPacket; left -= kPacket, at += kPacket) update_avx2(s, vector_of(at));
  if (left > 0) {
    add_size_avx2(s, left);
    const Lanes last = last_packet({at, left});
    update_avx2(s, vector_of(last.data()));
  }
  for (int round = 0; round < 4; ++round)  // lanes 2, 3, 0, 1, each with its halves swapped
    update_avx2(s, _mm256_shuffle_epi32(_mm256_permute4x64_epi64(s.v0, 0x4E), 0xB1));
  const __m256i sum = _mm256_add_epi64(_mm256_add_epi64(s.v0, s.v1), _mm256_add_epi64(s.mul0, s.mul1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm256_castsi256_si128(sum)));
}
#endif

}  // namespace

std::uint64_t highway_hash64_portable(std::span<const std::byte> bytes, const HighwayKey& key) {
  State s = start(key);
  for (; bytes.size() >= kPacket; bytes = bytes.subspan(kPacket)) {
    Lanes packet;
    std::memcpy(packet.data(), bytes.data(), kPacket);
    update(s, packet);
  }
  return finish(s, bytes);
}

std::uint64_t highway_hash64(std::span<const std::byte> bytes, const HighwayKey& key) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return highway_hash64_avx2(bytes, key);
#endif
  return highway_hash64_portable(bytes, key);
}

}  // namespace systole
