#include "ground/base/crc32c.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ground/base/hash.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

namespace systole {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // the polynomial, bits reversed

// Tables for eight bytes at a time (Kounavis and Berry 2005): table[k][b] is byte b followed by k zero bytes.
constexpr auto make_crc_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoli : 0);
    table[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = table[k - 1][byte];
      table[k][byte] = (crc >> 8) ^ table[0][crc & 0xff];
    }
  }
  return table;
}

constexpr auto kCrcTables = make_crc_tables();

std::uint32_t at(std::span<const std::byte> bytes, std::size_t index) {
  return std::to_integer<std::uint32_t>(bytes[index]);
}

std::uint32_t by_tables(std::span<const std::byte> bytes, std::uint32_t crc) {
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const std::uint32_t low =
        crc ^ (at(bytes, i) | at(bytes, i + 1) << 8 | at(bytes, i + 2) << 16 | at(bytes, i + 3) << 24);
    crc = kCrcTables[7][low & 0xff] ^ kCrcTables[6][low >> 8 & 0xff] ^ kCrcTables[5][low >> 16 & 0xff] ^
          kCrcTables[4][low >> 24] ^ kCrcTables[3][at(bytes, i + 4)] ^ kCrcTables[2][at(bytes, i + 5)] ^
          kCrcTables[1][at(bytes, i + 6)] ^ kCrcTables[0][at(bytes, i + 7)];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ at(bytes, i)) & 0xff];
  return crc;
}

// a·b modulo the polynomial, bits reversed: bit 31 is x⁰.
constexpr std::uint32_t multiplied(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kCastagnoli : 0);
  }
  return product;
}

// x^(8·bytes): what so many zero bytes multiply by.
constexpr std::uint32_t zeros(std::uint64_t bytes) {
  std::uint32_t product = 1u << 31, power = 1u << 23;  // x⁸
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) product = multiplied(product, power);
    power = multiplied(power, power);
  }
  return product;
}

#if defined(__x86_64__)
// The instruction takes three cycles and one can begin in each, so three runs of words go side by side. What the first two
// came to is moved past the bytes behind by a carry-less product, which goes into the last word of the third: the
// instruction reduces it, and multiplies by the x³³ that its factor lacks.
constexpr std::size_t kFewestWords = 8, kMostWords = 256;

struct PastRuns {
  std::uint32_t one = 0, two = 0;  // x^(64·words - 33), x^(128·words - 33)
};

constexpr auto kPast = [] {
  std::array<PastRuns, kMostWords + 1> past{};
  past[1] = {1, multiplied(1, zeros(8))};  // x³¹, x⁹⁵
  for (std::size_t words = 2; words <= kMostWords; ++words)
    past[words] = {multiplied(past[words - 1].one, zeros(8)), multiplied(past[words - 1].two, zeros(16))};
  return past;
}();

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

[[gnu::target("sse4.2,pclmul")]] std::uint32_t by_instruction(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint64_t crc = before;
  const std::byte* from = bytes.data();
  std::size_t left = bytes.size();
  while (left >= 3 * 8 * kFewestWords) {
    const std::size_t words = std::min(left / 24, kMostWords), last = 8 * (words - 1), run = 8 * words;
    const std::byte *at = from, *const until = from + last;
    std::uint64_t second = 0, third = 0;
    for (; at != until; at += 8) {
      crc = _mm_crc32_u64(crc, word_at(at));
      second = _mm_crc32_u64(second, word_at(at + run));
      third = _mm_crc32_u64(third, word_at(at + 2 * run));
    }
    crc = _mm_crc32_u64(crc, word_at(at));
    second = _mm_crc32_u64(second, word_at(at + run));
    const __m128i past = _mm_set_epi64x(kPast[words].two, kPast[words].one);
    const __m128i moved =
        _mm_xor_si128(_mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)), past, 0x10),
                      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(second)), past, 0));
    crc = _mm_crc32_u64(third, word_at(at + 2 * run) ^ static_cast<std::uint64_t>(_mm_cvtsi128_si64(moved)));
    from += 3 * run;
    left -= 3 * run;
  }
  for (; left >= 8; left -= 8, from += 8) crc = _mm_crc32_u64(crc, word_at(from));
  auto last = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++from) last = _mm_crc32_u8(last, std::to_integer<unsigned char>(*from));
  return last;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
  if (has_instruction) return ~by_instruction(bytes, ~before);
#endif
  return ~by_tables(bytes, ~before);
}

std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) {
  return multiplied(first, zeros(second_size)) ^ second;
}

}  // namespace systole
