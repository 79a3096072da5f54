#include "ground/tensor/int4.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace systole {
namespace {

using Numbers = std::array<float, kInt4Group>;

// Largest difference of the group from x.
float off(const Numbers& x, const Int4Block& block) {
  float most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(value_of(block, i) - x[i]));
  return most;
}

TEST(Int4, SixteenStepsAreExact) {
  Numbers x;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.25F * static_cast<float>(i * 7 % 16) - 1;
  EXPECT_EQ(off(x, quantize_group(x)), 0);
  x.fill(-0.75F);
  EXPECT_EQ(off(x, quantize_group(x)), 0);
}

TEST(Int4, ANumberIsWithinAStepAndTheErrorNoMoreThanOfTheWholeRange) {
  Numbers x;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i)) * 0.05F;
  x[3] = 0.2F;  // an outlier, which a narrower range cuts
  const Int4Block block = quantize_group(x);
  const auto [low, high] = std::ranges::minmax(x);
  EXPECT_LT(off(x, block), (high - low) / 15);
  double squares = 0, plain = 0;
  const float step = (high - low) / 15;
  for (std::size_t i = 0; i < x.size(); ++i) {
    squares += std::pow(value_of(block, i) - x[i], 2);
    plain += std::pow(low + step * std::nearbyint((x[i] - low) / step) - x[i], 2);
  }
  EXPECT_LT(squares, plain);
}

TEST(Int4, WhatIsNotFiniteIsSeenInTheScales) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3e6F}) {
    Numbers x{};
    x[5] = bad;
    EXPECT_FALSE(std::isfinite(from_half(quantize_group(x).scale))) << bad;
  }
  Numbers large;  // beyond f16
  large.fill(1e5F);
  EXPECT_FALSE(std::isfinite(from_half(quantize_group(large).minimum)));
}

TEST(Int4, AMatrixHasEachGroupInItsPlace) {
  constexpr std::int64_t kRows = 48, kColumns = 96, kGroups = kColumns / kInt4Group;
  std::vector<std::uint8_t> codes(kRows * kColumns / 2);
  std::vector<std::uint16_t> scales(kRows * kGroups * 2);
  const auto group_of = [](std::int64_t row, std::int64_t group) {
    Int4Block block;
    block.scale = static_cast<std::uint16_t>(row * 8 + group);
    block.minimum = static_cast<std::uint16_t>(1000 + row * 8 + group);
    for (std::size_t i = 0; i < 16; ++i) block.codes[i] = static_cast<std::uint8_t>(row * 37 + group * 91) ^ (i * 17);
    return block;
  };
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t g = 0; g < kGroups; ++g) put_block(group_of(row, g), kColumns, row, g, codes, scales);
  }
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t g = 0; g < kGroups; ++g) {
      const Int4Block got = block_at(kColumns, row, g, codes, scales), want = group_of(row, g);
      EXPECT_EQ(got.codes, want.codes);
      EXPECT_EQ(got.scale, want.scale);
      EXPECT_EQ(got.minimum, want.minimum);
    }
  }
  // Row 17, of the second panel, group 2, element 21: byte 1 of the second quarter, in its high bits.
  EXPECT_EQ(codes[(1 * kGroups + 2) * 256 + 64 + 1 * 4 + 1], group_of(17, 2).codes[5]);
}

}  // namespace
}  // namespace systole
