#include "ground/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>
#if defined(__x86_64__)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <immintrin.h>
#include <xxh_x86dispatch.h>
#endif

#include <array>

#include "ground/base/error.h"

namespace systole {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

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

// Long inputs use the widest vectors of the machine. libxxhash's AVX loops (0.8.1) return with the upper halves of the
// vector registers dirty, which slows down all later SSE code of the thread: planning took twice its time. So the upper
// halves are cleared.
#if defined(__x86_64__)
constexpr std::size_t kManyBytes = 16384;

[[gnu::target("avx")]] void give_back_upper_halves() { _mm256_zeroupper(); }

void after_wide_loops() {
  static const bool has_upper_halves = __builtin_cpu_supports("avx") != 0;
  if (has_upper_halves) give_back_upper_halves();
}

XXH128_hash_t xxh128(std::span<const std::byte> bytes) {
  if (bytes.size() < kManyBytes) return XXH3_128bits(bytes.data(), bytes.size());
  const XXH128_hash_t hash = XXH3_128bits_dispatch(bytes.data(), bytes.size());
  after_wide_loops();
  return hash;
}

void update(XXH3_state_t* state, std::span<const std::byte> bytes) {
  if (bytes.size() < kManyBytes) {
    XXH3_128bits_update(state, bytes.data(), bytes.size());
    return;
  }
  XXH3_128bits_update_dispatch(state, bytes.data(), bytes.size());
  after_wide_loops();
}
#else
XXH128_hash_t xxh128(std::span<const std::byte> bytes) { return XXH3_128bits(bytes.data(), bytes.size()); }

void update(XXH3_state_t* state, std::span<const std::byte> bytes) {
  XXH3_128bits_update(state, bytes.data(), bytes.size());
}
#endif

}  // namespace

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}
std::uint64_t hash64(std::string_view text, std::uint64_t seed) { return hash64(bytes_of(text), seed); }

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = xxh128(bytes);
  return {hash.high64, hash.low64};
}
Hash128 hash128(std::string_view text) { return hash128(bytes_of(text)); }

std::string to_hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }
std::string to_hex(Hash128 hash) { return to_hex(hash.high) + to_hex(hash.low); }

struct Hasher::State {
  State() : xx(XXH3_createState(), &XXH3_freeState) {
    CHECK(xx != nullptr, "no memory for a hash's state");
    XXH3_128bits_reset(xx.get());
  }
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> xx;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) update(state_->xx.get(), bytes);
  return *this;
}
Hasher& Hasher::add(std::string_view text) { return add(bytes_of(text)); }

Hash128 Hasher::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xx.get());
  return {hash.high64, hash.low64};
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const std::uint32_t low =
        crc ^ (at(bytes, i) | at(bytes, i + 1) << 8 | at(bytes, i + 2) << 16 | at(bytes, i + 3) << 24);
    crc = kCrcTables[7][low & 0xff] ^ kCrcTables[6][low >> 8 & 0xff] ^ kCrcTables[5][low >> 16 & 0xff] ^
          kCrcTables[4][low >> 24] ^ kCrcTables[3][at(bytes, i + 4)] ^ kCrcTables[2][at(bytes, i + 5)] ^
          kCrcTables[1][at(bytes, i + 6)] ^ kCrcTables[0][at(bytes, i + 7)];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ at(bytes, i)) & 0xff];
  return ~crc;
}

}  // namespace systole
