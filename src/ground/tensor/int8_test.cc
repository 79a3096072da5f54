#include "ground/tensor/int8.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace systole {
namespace {

TEST(QuantizeRow, TheLargestIs127AndTiesGoToEven) {
  const std::array<float, 5> x{63.5F, -127, 0.5F, 1.5F, -2.5F};
  std::array<std::int8_t, 5> q{};
  EXPECT_EQ(quantize_row(x, q), 1);
  EXPECT_EQ(q, (std::array<std::int8_t, 5>{64, -127, 0, 2, -2}));
}

TEST(QuantizeRow, TinyRowsAreZerosAndLargeOnesDoNotOverflow) {
  std::array<std::int8_t, 2> q{1, 1};
  EXPECT_GT(quantize_row(std::array<float, 2>{1e-40F, 0}, q), 0);
  EXPECT_EQ(q, (std::array<std::int8_t, 2>{0, 0}));
  EXPECT_EQ(quantize_row(std::array<float, 2>{3.4e38F, -1.7e38F}, q), 3.4e38F / 127);
  EXPECT_EQ(q, (std::array<std::int8_t, 2>{127, -64}));
}

TEST(QuantizeRow, ValuesThatAreNotFiniteGiveNaN) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::array<std::int8_t, 2> q{1, 1};
    EXPECT_TRUE(std::isnan(quantize_row(std::array<float, 2>{3, bad}, q)));
    EXPECT_EQ(q, (std::array<std::int8_t, 2>{0, 0}));
  }
}

// By its formula, one number at a time; of any length, so that vectors have ends.
TEST(QuantizeRow, IsItsFormulaToTheBit) {
  std::uint32_t state = 1;
  for (std::size_t size = 1; size < 200; ++size) {
    std::vector<float> x(size);
    for (float& value : x) {
      state = state * 1664525U + 1013904223U;
      // Of three kinds: any, exact halves of a step, and tiny ones.
      const auto whole = static_cast<float>(static_cast<std::int32_t>(state >> 8) - (1 << 23));
      value = state % 3 == 0 ? whole : state % 3 == 1 ? 0x1p15F * static_cast<float>(state >> 24) : whole * 0x1p-140F;
    }
    x[size / 2] = size % 2 == 0 ? -0x1.fcp23F : 0x1.fcp23F;  // 127 · 2^17: a step is a power of two
    std::vector<std::int8_t> q(size);
    ASSERT_EQ(quantize_row(x, q), 0x1p17F) << size;
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(q[i], static_cast<std::int8_t>(std::lrintf(x[i] * (127.0F / 0x1.fcp23F)))) << size << " " << i;
  }
}

}  // namespace
}  // namespace systole
