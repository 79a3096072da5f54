#pragma once
// The cryptographic functions that checkpoints need, from OpenSSL's libcrypto; its headers stay in crypto.cc. If
// libcrypto itself fails (no memory, no randomness), a Failure is thrown; a failed verification is a return value.

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

// Derives a key for one purpose: HKDF-SHA256 (RFC 5869) with this salt (zeros: none) and purpose.
Key256 derive(const Key256& from, const Key256& salt, std::string_view purpose);
Key256 hmac_sha256(const Key256& key, std::string_view text);
bool equal(const Key256& a, const Key256& b);  // in constant time

// AES-256-GCM: encrypts `text` in place and returns its tag. `bound` is authenticated but not encrypted. REQUIRES:
// `number`, the nonce, was never used with this key.
std::array<std::byte, kTagBytes> encrypt(const Key256& key, std::uint64_t number, std::string_view bound,
                                         std::span<std::byte> text);
// Decrypts in place. If key, number, bound, tag or text are not those of `encrypt`: false, and `text` is undefined.
bool decrypt(const Key256& key, std::uint64_t number, std::string_view bound, std::span<std::byte> text,
             std::span<const std::byte, kTagBytes> tag);

// Ed25519 (RFC 8032); the secret key is its seed.
Key256 public_key_of(const Key256& secret);
Signature sign(const Key256& secret, std::string_view text);
bool is_signed(const Key256& public_key, std::string_view text, const Signature& signature);
std::optional<Signature> signature_from_hex(std::string_view hex);

}  // namespace systole::checkpoint
