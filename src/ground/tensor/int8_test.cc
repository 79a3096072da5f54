#include "ground/tensor/int8.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

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

}  // namespace
}  // namespace systole
