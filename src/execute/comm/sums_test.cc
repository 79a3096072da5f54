#include "execute/comm/sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace systole {
namespace {

const std::vector<double> kValues{0,
                                  -0.0,
                                  1,
                                  -1,
                                  2.5,
                                  100,
                                  -100,
                                  3e4,
                                  1e30,
                                  -1e30,
                                  std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};

// Each pair of values, at every length up to a few vectors and more.
TEST(Sums, each_pair_of_values_in_each_type) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const bool maximum : {false, true}) {
      const CombinePiece combine = combine_of(dtype, maximum);
      if (combine == nullptr) continue;
      for (std::int64_t n = 0; n <= static_cast<std::int64_t>(kValues.size() * kValues.size()); ++n) {
        std::vector<std::byte> a(static_cast<std::size_t>(n * size_of(dtype))), b(a.size());
        const auto value = [&](std::int64_t i) { return kValues[static_cast<std::size_t>(i) % kValues.size()]; };
        for (std::int64_t i = 0; i < n; ++i) {
          store(dtype, a.data(), i, value(i));
          store(dtype, b.data(), i, value(i / static_cast<std::int64_t>(kValues.size())));
        }
        const std::vector<std::byte> before = a;
        combine(a.data(), b.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
          const double x = load(dtype, before.data(), i), y = load(dtype, b.data(), i), got = load(dtype, a.data(), i);
          double want = x + y;
          if (maximum) want = std::isnan(x) || std::isnan(y) ? std::nan("") : std::max(x, y);
          if (!is_float(dtype) && !maximum && std::abs(x) + std::abs(y) > 100) continue;  // wraps; tested below
          if (is_float(dtype)) want = rounded(dtype, want);
          ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
              << name_of(dtype) << " " << x << " and " << y << ": " << got;
        }
      }
    }
  }
}

TEST(Sums, integers_wrap) {
  std::int32_t a = std::numeric_limits<std::int32_t>::max();
  const std::int32_t b = 2;
  combine_of(DType::i32, false)(reinterpret_cast<std::byte*>(&a), reinterpret_cast<const std::byte*>(&b), 1);
  EXPECT_EQ(a, std::numeric_limits<std::int32_t>::min() + 1);
  std::int64_t large = (std::int64_t{1} << 53) + 1;  // not exact in double
  const std::int64_t one = 1;
  combine_of(DType::i64, false)(reinterpret_cast<std::byte*>(&large), reinterpret_cast<const std::byte*>(&one), 1);
  EXPECT_EQ(large, (std::int64_t{1} << 53) + 2);
}

TEST(Sums, of_bf16_and_f16_go_through_f32) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    EXPECT_EQ(combine_of(dtype, false), nullptr);
    const WidenedSum sum = widened_sum_of(dtype);
    std::vector<std::byte> bits(37 * 2), result(bits.size());
    std::vector<float> sums(37);
    for (std::int64_t i = 0; i < 37; ++i) store(dtype, bits.data(), i, 1 + static_cast<double>(i) / 64);
    sum.widen(sums.data(), bits.data(), 37);
    for (int more = 0; more < 2; ++more) sum.add(reinterpret_cast<std::byte*>(sums.data()), bits.data(), 37);
    sum.round(result.data(), sums.data(), 37);
    for (std::int64_t i = 0; i < 37; ++i)
      EXPECT_EQ(load(dtype, result.data(), i), rounded(dtype, 3 * load(dtype, bits.data(), i)));
  }
  EXPECT_THROW(widened_sum_of(DType::f32), Failure);
}

}  // namespace
}  // namespace systole
