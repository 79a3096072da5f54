#include "ground/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "ground/base/hash.h"

namespace systole {
namespace {

// One bit at a time.
std::uint32_t slow_crc32c(std::string_view text, std::uint32_t before = 0) {
  std::uint32_t crc = ~before;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

std::uint32_t sum(std::string_view text, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())), before);
}

std::string some_text(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(hash64("x", i));
  return text;
}

TEST(Crc32c, is_the_slow_one_at_every_size_and_place) {
  const std::string text = some_text(40'000);
  for (const std::size_t size :
       {0, 1, 7, 8, 9, 4095, 4096, 12'287, 12'288, 12'289, 6143, 6144, 6145, 6167, 6168, 24'577, 39'990})
    for (const std::size_t from : {0, 1, 5})
      EXPECT_EQ(sum(std::string_view(text).substr(from, size)), slow_crc32c(std::string_view(text).substr(from, size)));
  for (std::size_t size = 0; size < 700; ++size) {
    const std::string_view some = std::string_view(text).substr(size, size);
    EXPECT_EQ(sum(some, 7), slow_crc32c(some, 7)) << size;
  }
}

TEST(Crc32c, joins_the_sums_of_pieces) {
  const std::string text = some_text(20'000);
  const std::uint32_t whole = sum(text);
  for (const std::size_t cut : {0, 1, 100, 12'288, 19'999, 20'000}) {
    const std::string_view first = std::string_view(text).substr(0, cut), second = std::string_view(text).substr(cut);
    EXPECT_EQ(crc32c_joined(sum(first), sum(second), second.size()), whole) << cut;
    EXPECT_EQ(sum(second, sum(first)), whole) << cut;
  }
}

}  // namespace
}  // namespace systole
