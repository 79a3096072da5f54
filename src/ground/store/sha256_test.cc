#include "ground/store/sha256.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace systole {
namespace {

// The examples of FIPS 180-4, from NIST's "Examples with Intermediate Values", including a million letters.
TEST(Sha256, of_fips_180) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, a_file_is_its_bytes_whatever_the_pieces) {
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("systole-sha256-{}", ::getpid());
  std::ofstream(path) << std::string(3'000'001, 'x');
  EXPECT_EQ(sha256_of_file(path).value(), sha256_of(std::string(3'000'001, 'x')));
  std::filesystem::remove(path);
  EXPECT_EQ(sha256_of_file(path).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole
