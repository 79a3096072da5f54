#include "execute/weights/gguf/gguf_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "ground/base/error.h"

namespace systole {
namespace {

// Bytes of a linear congruential generator.
std::vector<std::byte> made_up(std::size_t count) {
  std::vector<std::byte> bytes;
  std::uint32_t x = 1;
  for (std::size_t i = 0; i < count; ++i) {
    x = (x * 1103515245U + 12345U) & 0x7fffffffU;
    bytes.push_back(static_cast<std::byte>(x >> 16));
  }
  return bytes;
}

void put_half(std::vector<std::byte>& bytes, std::size_t at, double value) {
  store(DType::f16, bytes.data() + at, 0, value);
}

// FNV-1a, 64 bits.
std::uint64_t fnv(const std::vector<float>& numbers) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<std::uint32_t>(number);
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (bits >> shift & 0xff)) * 0x100000001b3U;
  }
  return hash;
}

// A block of made-up bytes whose f16 scale is 0.0123 and minimum -0.0371, and what the Python package gguf 0.19.0 makes
// of it (gguf.quants.dequantize): the first, the second, the middle and the last float by their bits, and a hash of all.
struct Known {
  const char* name;
  std::size_t scale, minimum;  // their bytes; no minimum: 0
  std::array<std::uint32_t, 4> bits;
  std::uint64_t hash;
};
constexpr std::array kKnown = {
    Known{"Q4_0", 0, 0, {0xbdb05000, 0x3d172000, 0x0, 0x3d172000}, 0x3375fa0adfe30074U},
    Known{"Q4_1", 0, 2, {0x3dc91000, 0x3dc91000, 0x3c460000, 0x3dfb7000}, 0xb1bec16af2618380U},
    Known{"Q5_0", 0, 0, {0x3cc98000, 0xbd7be000, 0x3e305000, 0x3db05000}, 0xb0af12ca42fd5291U},
    Known{"Q5_1", 0, 2, {0x3e55e000, 0x3e6f1000, 0x3cc7c000, 0x3e55e000}, 0x5bbf0cf402052c72U},
    Known{"Q8_0", 0, 0, {0xbfc7ed00, 0x3fa87100, 0x3f1a4600, 0x3f876200}, 0xeeacde8739477f99U},
    Known{"Q4_K", 0, 2, {0x3f60a200, 0x40315f80, 0x40c09b00, 0x40da04c0}, 0xb3b043e40ac54888U},
    Known{"Q5_K", 0, 2, {0x40884e80, 0x404b5900, 0x407cfa00, 0x40304a80}, 0xc921e107b086f559U},
    Known{"Q6_K", 208, 0, {0xc0e2b000, 0x40172000, 0x41e92e60, 0x41d48500}, 0xfdebd9df5718723cU}};

const GgufBlock& named(std::string_view name) {
  for (std::uint32_t id = 0; id < 64; ++id) {
    if (gguf_block(id) != nullptr && gguf_block(id)->name == name) return *gguf_block(id);
  }
  fail(error(ErrorKind::not_found, "no type '{}'", name));
}

TEST(GgufBlocks, AreWhatTheReferenceMakesOfThemBitForBit) {
  for (const Known& known : kKnown) {
    SCOPED_TRACE(known.name);
    const GgufBlock& block = named(known.name);
    std::vector<std::byte> bytes = made_up(static_cast<std::size_t>(block.bytes));
    put_half(bytes, known.scale, 0.0123);
    if (known.minimum > 0) put_half(bytes, known.minimum, -0.0371);
    const auto count = static_cast<std::size_t>(block.elements);
    std::vector<float> numbers(count);
    widen(block, bytes, numbers);
    const std::array<std::size_t, 4> places = {0, 1, count / 2, count - 1};
    for (std::size_t i = 0; i < places.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(numbers[places[i]]), known.bits[i]) << i;
    EXPECT_EQ(fnv(numbers), known.hash);
  }
}

TEST(GgufBlocks, FollowEachOther) {
  const GgufBlock& block = named("Q8_0");
  std::vector<std::byte> bytes(68);
  put_half(bytes, 0, 1);
  put_half(bytes, 34, 0.5);
  bytes[2] = static_cast<std::byte>(-128);
  bytes[34 + 33] = static_cast<std::byte>(127);
  std::vector<float> numbers(64);
  widen(block, bytes, numbers);
  EXPECT_EQ(numbers[0], -128);
  EXPECT_EQ(numbers[63], 63.5F);
  EXPECT_EQ(numbers[32], 0);
}

TEST(GgufBlocks, HaveEveryScaleOfSixteenBits) {
  const GgufBlock& block = named("Q8_0");
  std::vector<std::byte> bytes(34, std::byte{1});
  std::vector<float> numbers(32);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    bytes[0] = static_cast<std::byte>(bits & 0xff);
    bytes[1] = static_cast<std::byte>(bits >> 8);
    widen(block, bytes, numbers);
    const auto want = static_cast<float>(load(DType::f16, bytes.data(), 0));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(numbers[0])) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(numbers[0]), std::bit_cast<std::uint32_t>(want)) << bits;
    }
  }
}

// A scale that is no number makes all of its block none, and breaks nothing.
TEST(GgufBlocks, TakeAnyBytes) {
  for (const std::byte byte : {std::byte{0}, std::byte{0xff}}) {
    for (const Known& known : kKnown) {
      const GgufBlock& block = named(known.name);
      const std::vector<std::byte> bytes(static_cast<std::size_t>(block.bytes), byte);
      std::vector<float> numbers(static_cast<std::size_t>(block.elements), 7);
      widen(block, bytes, numbers);
      for (const float number : numbers) {
        EXPECT_EQ(number == 0, byte == std::byte{0}) << known.name;
        EXPECT_EQ(std::isnan(number), byte != std::byte{0}) << known.name;
      }
    }
  }
}

TEST(GgufBlocks, AreNamed) {
  EXPECT_STREQ(gguf_block(12)->name, "Q4_K");
  EXPECT_EQ(gguf_block(10), nullptr);
  EXPECT_EQ(gguf_type_name(10), "Q2_K");
  EXPECT_EQ(gguf_type_name(14), "Q6_K");
  EXPECT_EQ(gguf_type_name(77), "77");
  EXPECT_EQ(gguf_types_read(), "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K");
}

// Q4_0 and Q4_1 as groups of int4 are the same numbers; of Q4_0 a zero may have the other sign.
TEST(GgufBlocks, OfFourBitsAreGroupsOfInt4) {
  for (const char* name : {"Q4_0", "Q4_1"}) {
    const GgufBlock& block = named(name);
    ASSERT_TRUE(is_int4(block));
    for (const double scale : {0.0123, -0.0371, 6e-8, 0.0, 8100.0}) {
      std::vector<std::byte> bytes = made_up(static_cast<std::size_t>(2 * block.bytes));
      for (const std::size_t at : {std::size_t{0}, static_cast<std::size_t>(block.bytes)}) {
        put_half(bytes, at, scale);
        if (block.bytes == 20) put_half(bytes, at + 2, -0.71);
      }
      std::vector<float> want(64);
      widen(block, bytes, want);
      std::array<Int4Block, 2> got;
      ASSERT_TRUE(as_int4(block, bytes, got));
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(value_of(got[i / 32], i % 32), want[i]) << name << i;
    }
    std::vector<std::byte> bytes = made_up(static_cast<std::size_t>(block.bytes));
    put_half(bytes, 0, 9000);
    std::array<Int4Block, 1> got;
    EXPECT_EQ(as_int4(block, bytes, got), block.bytes == 20) << "-8 times 9000 is beyond f16";
  }
  EXPECT_FALSE(is_int4(named("Q8_0")));
  EXPECT_FALSE(is_int4(named("Q4_K")));
}

}  // namespace
}  // namespace systole
