#pragma once
// The few acts of cryptography that checkpoints need, out of OpenSSL's libcrypto; its headers stay in crypto.cc. What
// libcrypto refuses to do at all (no memory, no randomness) is thrown as Failure; what does not verify is a value.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace systole::checkpoint {

using Key256 = std::array<std::byte, 32>;
using Signature = std::array<std::byte, 64>;
inline constexpr std::size_t kTagBytes = 16;

Key256 random_key();
std::optional<Key256> key_from_hex(std::string_view hex);   // 64 digits, either case
std::string to_hex_text(std::span<const std::byte> bytes);  // lower-case

// A key for one purpose out of another one: HKDF-SHA256 (RFC 5869) with this salt (zeros: none) and purpose.
Key256 derive(const Key256& from, const Key256& salt, std::string_view purpose);
Key256 hmac_sha256(const Key256& key, std::string_view text);
bool equal(const Key256& a, const Key256& b);  // in constant time

// AES-256-GCM: `text` encrypted in place and its tag. REQUIRES: `number` was never used with this key.
std::array<std::byte, kTagBytes> encrypt(const Key256& key, std::uint64_t number, std::string_view bound,
                                         std::span<std::byte> text);
// Decrypts in place. False, and `text` is worthless, when key, number, bound, tag or text are not those of `encrypt`.
bool decrypt(const Key256& key, std::uint64_t number, std::string_view bound, std::span<std::byte> text,
             std::span<const std::byte, kTagBytes> tag);

// Ed25519 (RFC 8032); the secret key is its seed.
Key256 public_key_of(const Key256& secret);
Signature sign(const Key256& secret, std::string_view text);
bool is_signed(const Key256& public_key, std::string_view text, const Signature& signature);
std::optional<Signature> signature_from_hex(std::string_view hex);

}  // namespace systole::checkpoint
