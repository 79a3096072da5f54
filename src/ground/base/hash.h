#pragma once
// Content hashes: xxHash (XXH3, the format of libxxhash 0.8), fast and well mixed, not cryptographic. They name chunks
// and detect corruption; they do not resist deliberate collisions.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace systole {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
};

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);
Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);

std::string to_hex(std::uint64_t hash);  // 16 digits
std::string to_hex(Hash128 hash);        // 32 digits, high half first, as xxhsum -H2 prints it

// Incremental 128-bit hash; equal to hash128 of the whole.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  Hasher& add(std::span<const std::byte> bytes);
  Hasher& add(std::string_view text);
  Hash128 digest() const;  // of all bytes so far; more may be added

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of record formats. `before` continues an earlier one.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace systole
