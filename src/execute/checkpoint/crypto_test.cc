// Test vectors of the standards: any build of libcrypto, and any other program, must give these results.

#include "execute/checkpoint/crypto.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace systole::checkpoint {
namespace {

// RFC 8032, section 7.1, test 2.
TEST(Crypto, Ed25519OfRfc8032) {
  const Key256 secret = *key_from_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
  const Key256 open = public_key_of(secret);
  EXPECT_EQ(to_hex_text(open), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const Signature signature = sign(secret, "\x72");
  EXPECT_EQ(to_hex_text(signature),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(is_signed(open, "\x72", signature));
  EXPECT_FALSE(is_signed(open, "\x73", signature));
  EXPECT_FALSE(is_signed(public_key_of(open), "\x72", signature));
}

// McGrew and Viega, The Galois/Counter Mode of Operation, test case 14: a key of zeros, nonce 0, 16 zeros.
TEST(Crypto, Aes256GcmOfItsSpecification) {
  std::vector<std::byte> text(16);
  const auto tag = encrypt(Key256{}, 0, "", text);
  EXPECT_EQ(to_hex_text(text), "cea7403d4d606b6e074ec5d3baf39d18");
  EXPECT_EQ(to_hex_text(tag), "d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(Crypto, WhatWasChangedDoesNotDecrypt) {
  const Key256 key = random_key();
  const std::vector<std::byte> plain(1000, std::byte{7});
  std::vector<std::byte> secret = plain;
  const auto tag = encrypt(key, 3, "frame 3 of 4", secret);
  EXPECT_NE(secret, plain);
  const auto opens = [&](const Key256& with, std::uint64_t number, std::string_view bound, std::size_t flip) {
    std::vector<std::byte> copy = secret;
    if (flip < copy.size()) copy[flip] ^= std::byte{1};
    const bool well = decrypt(with, number, bound, copy, tag);
    if (well) { EXPECT_EQ(copy, plain); }
    return well;
  };
  EXPECT_TRUE(opens(key, 3, "frame 3 of 4", plain.size()));
  EXPECT_FALSE(opens(random_key(), 3, "frame 3 of 4", plain.size()));
  EXPECT_FALSE(opens(key, 2, "frame 3 of 4", plain.size()));
  EXPECT_FALSE(opens(key, 3, "frame 3 of 3", plain.size()));
  EXPECT_FALSE(opens(key, 3, "frame 3 of 4", 999));
}

// RFC 5869: extract is HMAC with the salt as key; expand to 32 bytes is HMAC of the purpose and the byte 1.
TEST(Crypto, HkdfIsTwoHmacs) {
  const Key256 from = random_key(), salt = random_key();
  std::string text;
  for (const std::byte b : from) text += static_cast<char>(b);
  const Key256 extracted = hmac_sha256(salt, text);
  EXPECT_EQ(derive(from, salt, "purpose"), hmac_sha256(extracted, std::string("purpose") + '\x01'));
  EXPECT_NE(derive(from, salt, "purpose"), derive(from, salt, "another"));
}

TEST(Crypto, KeysAreHexOf32Bytes) {
  EXPECT_FALSE(key_from_hex("00"));
  EXPECT_FALSE(key_from_hex(std::string(63, '0') + "g"));
  EXPECT_EQ(*key_from_hex(std::string(64, 'A')), *key_from_hex(std::string(64, 'a')));
  EXPECT_NE(random_key(), random_key());
}

}  // namespace
}  // namespace systole::checkpoint
