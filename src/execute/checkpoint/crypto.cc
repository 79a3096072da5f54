#include "execute/checkpoint/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "ground/base/error.h"

namespace systole::checkpoint {

namespace {

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

void must(bool done, const char* what) {
  if (!done) fail(error(ErrorKind::internal, "libcrypto: {} failed", what));
}

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* held) const { Free(held); }
};
template <typename T, void (*Free)(T*)>
using Held = std::unique_ptr<T, Freed<T, Free>>;
using HeldKey = Held<EVP_PKEY, EVP_PKEY_free>;
using HeldKeyContext = Held<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using HeldDigest = Held<EVP_MD_CTX, EVP_MD_CTX_free>;
using HeldCipher = Held<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;

std::optional<int> digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

template <std::size_t N>
std::optional<std::array<std::byte, N>> from_hex(std::string_view hex) {
  if (hex.size() != 2 * N) return std::nullopt;
  std::array<std::byte, N> bytes;
  for (std::size_t i = 0; i < N; ++i) {
    const auto high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    bytes[i] = static_cast<std::byte>(*high * 16 + *low);
  }
  return bytes;
}

// 96 bits: zeros, then the number, most significant byte first.
std::array<unsigned char, 12> nonce_of(std::uint64_t number) {
  std::array<unsigned char, 12> nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce[11 - i] = static_cast<unsigned char>(number >> (8 * i));
  return nonce;
}

// EVP takes lengths as int; a frame has 1 MiB.
int length(std::size_t size) {
  CHECK(size < (1U << 30), "{} bytes at once", size);
  return static_cast<int>(size);
}

}  // namespace

Key256 random_key() {
  Key256 key;
  must(RAND_bytes(raw(key.data()), static_cast<int>(key.size())) == 1, "RAND_bytes");
  return key;
}

std::optional<Key256> key_from_hex(std::string_view hex) { return from_hex<32>(hex); }
std::optional<Signature> signature_from_hex(std::string_view hex) { return from_hex<64>(hex); }

std::string to_hex_text(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

Key256 derive(const Key256& from, const Key256& salt, std::string_view purpose) {
  const HeldKeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  Key256 key;
  std::size_t size = key.size();
  must(context && EVP_PKEY_derive_init(context.get()) == 1 &&
           EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
           EVP_PKEY_CTX_set1_hkdf_salt(context.get(), raw(salt.data()), length(salt.size())) == 1 &&
           EVP_PKEY_CTX_set1_hkdf_key(context.get(), raw(from.data()), length(from.size())) == 1 &&
           EVP_PKEY_CTX_add1_hkdf_info(context.get(), raw(purpose), length(purpose.size())) == 1 &&
           EVP_PKEY_derive(context.get(), raw(key.data()), &size) == 1 && size == key.size(),
       "HKDF");
  return key;
}

Key256 hmac_sha256(const Key256& key, std::string_view text) {
  Key256 mac;
  unsigned size = 0;
  must(HMAC(EVP_sha256(), key.data(), length(key.size()), raw(text), text.size(), raw(mac.data()), &size) != nullptr &&
           size == mac.size(),
       "HMAC");
  return mac;
}

bool equal(const Key256& a, const Key256& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

std::array<std::byte, kTagBytes> encrypt(const Key256& key, std::uint64_t number, std::string_view bound,
                                         std::span<std::byte> text) {
  const HeldCipher context(EVP_CIPHER_CTX_new());
  const auto nonce = nonce_of(number);
  std::array<std::byte, kTagBytes> tag;
  int size = 0;
  must(context && EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, raw(key.data()), nonce.data()) == 1 &&
           EVP_EncryptUpdate(context.get(), nullptr, &size, raw(bound), length(bound.size())) == 1 &&
           (text.empty() ||
            EVP_EncryptUpdate(context.get(), raw(text.data()), &size, raw(text.data()), length(text.size())) == 1) &&
           EVP_EncryptFinal_ex(context.get(), raw(text.data()) + text.size(), &size) == 1 && size == 0 &&
           EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1,
       "AES-256-GCM");
  return tag;
}

bool decrypt(const Key256& key, std::uint64_t number, std::string_view bound, std::span<std::byte> text,
             std::span<const std::byte, kTagBytes> tag) {
  const HeldCipher context(EVP_CIPHER_CTX_new());
  const auto nonce = nonce_of(number);
  std::array<std::byte, kTagBytes> expected;
  std::copy(tag.begin(), tag.end(), expected.begin());
  int size = 0;
  must(context && EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, raw(key.data()), nonce.data()) == 1 &&
           EVP_DecryptUpdate(context.get(), nullptr, &size, raw(bound), length(bound.size())) == 1 &&
           (text.empty() ||
            EVP_DecryptUpdate(context.get(), raw(text.data()), &size, raw(text.data()), length(text.size())) == 1) &&
           EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, expected.data()) == 1,
       "AES-256-GCM");
  return EVP_DecryptFinal_ex(context.get(), raw(text.data()) + text.size(), &size) == 1;
}

namespace {
HeldKey secret_of(const Key256& seed) {
  HeldKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(seed.data()), seed.size()));
  must(key != nullptr, "Ed25519");
  return key;
}
}  // namespace

Key256 public_key_of(const Key256& secret) {
  Key256 key;
  std::size_t size = key.size();
  must(EVP_PKEY_get_raw_public_key(secret_of(secret).get(), raw(key.data()), &size) == 1 && size == key.size(),
       "Ed25519");
  return key;
}

Signature sign(const Key256& secret, std::string_view text) {
  const HeldDigest context(EVP_MD_CTX_new());
  const HeldKey key = secret_of(secret);
  Signature signature;
  std::size_t size = signature.size();
  must(context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           EVP_DigestSign(context.get(), raw(signature.data()), &size, raw(text), text.size()) == 1 &&
           size == signature.size(),
       "Ed25519");
  return signature;
}

bool is_signed(const Key256& public_key, std::string_view text, const Signature& signature) {
  const HeldKey key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(public_key.data()), public_key.size()));
  const HeldDigest context(EVP_MD_CTX_new());
  if (!key) return false;
  must(context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1, "Ed25519");
  return EVP_DigestVerify(context.get(), raw(signature.data()), signature.size(), raw(text), text.size()) == 1;
}

}  // namespace systole::checkpoint
