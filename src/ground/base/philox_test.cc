#include "ground/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace systole {
namespace {

// The known answers published with Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, gives_the_published_vectors) {
  static_assert(philox(0, {0, 0, 0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  EXPECT_EQ(philox(~std::uint64_t{0}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0'a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, counter_words_run_from_low_to_high) {
  EXPECT_EQ(philox_counter(0x1122334455667788, 0x99), (PhiloxBlock{0x55667788, 0x11223344, 0x99, 0}));
}

TEST(Uniform, stays_below_one) {
  EXPECT_EQ(uniform_f32(0), 0.0f);
  EXPECT_LT(uniform_f32(0xffffffff), 1.0f);
  EXPECT_EQ(uniform_f32(0x80000000), 0.5f);
  EXPECT_LT(uniform_f64(0xffffffff, 0xffffffff), 1.0);
  EXPECT_EQ(uniform_f64(0, 0x80000000), 0.5);
}

TEST(Uniform, has_the_mean_and_variance_of_a_uniform) {
  PhiloxStream random(1);
  double sum = 0, squares = 0;
  const int n = 100'000;
  for (int i = 0; i < n; ++i) {
    const double x = random.uniform();
    sum += x;
    squares += x * x;
  }
  // Within five standard deviations of the estimators.
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
}

TEST(Normal, has_the_moments_of_a_normal_and_no_infinity) {
  const auto [largest, zero] = normal_pair(0, 0);
  EXPECT_NEAR(largest, 6.66, 0.01);
  EXPECT_EQ(zero, 0.0);
  double sum = 0, squares = 0, fourth = 0;
  const int n = 100'000;
  for (int i = 0; i < n; i += 2) {
    const PhiloxBlock bits = philox(7, philox_counter(static_cast<std::uint64_t>(i)));
    const auto [a, b] = normal_pair(bits[0], bits[1]);
    for (double x : {a, b}) {
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
    }
  }
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0 / n));
}

TEST(PhiloxStream, streams_differ_and_repeat) {
  PhiloxStream a(1, 0), again(1, 0), b(1, 1);
  for (int i = 0; i < 9; ++i) {
    const std::uint32_t x = a.next_u32();
    EXPECT_EQ(x, again.next_u32());
    EXPECT_NE(x, b.next_u32());
  }
}

TEST(PhiloxStream, below_covers_its_range_evenly) {
  PhiloxStream random(3);
  std::vector<int> seen(7);
  for (int i = 0; i < 7'000; ++i) ++seen[random.below(7)];
  for (int count : seen) EXPECT_NEAR(count, 1000, 5 * std::sqrt(7000.0 / 7 * 6 / 7));
  EXPECT_EQ(random.below(1), 0u);
  EXPECT_LT(random.below(~std::uint64_t{0}), ~std::uint64_t{0});
}

}  // namespace
}  // namespace systole
