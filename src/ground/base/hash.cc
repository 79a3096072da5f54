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

}  // namespace systole
