#include "ground/tensor/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace systole {
namespace {

TensorStats stats(const std::vector<float>& values) {
  return stats_of(DType::f32, reinterpret_cast<const std::byte*>(values.data()),
                  static_cast<std::int64_t>(values.size()));
}

TEST(Stats, of_numbers) {
  const TensorStats s = stats({1, 2, 3, -6});
  EXPECT_EQ(s.low, -6);
  EXPECT_EQ(s.high, 3);
  EXPECT_EQ(s.mean, 0);
  EXPECT_DOUBLE_EQ(s.rms, std::sqrt(50.0 / 4));
  EXPECT_DOUBLE_EQ(s.deviation, s.rms);
  EXPECT_EQ(s.bad(), 0);
  EXPECT_EQ(s.first_bad, -1);
  EXPECT_EQ(range_text(s), "-6 .. 3");
}

TEST(Stats, of_what_is_no_number) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const TensorStats s = stats({1, -kInf, kNan, 3});
  EXPECT_EQ(s.nans, 1);
  EXPECT_EQ(s.infinities, 1);
  EXPECT_EQ(s.first_bad, 1);
  EXPECT_EQ(s.mean, 2);
  EXPECT_EQ(range_text(s), "1 .. 3, 1 NaN, 1 infinite");
  EXPECT_EQ(range_text(stats({kNan})), "all NaN");
  EXPECT_EQ(range_text(stats({kInf, kNan})), "all infinite or NaN, 1 NaN, 1 infinite");
  EXPECT_EQ(range_text(stats({})), "empty");
}

TEST(Stats, places) {
  EXPECT_EQ(place_text({2, 3, 4}, 23), "[1, 2, 3]");
  EXPECT_EQ(place_text({2, 3, 4}, 5), "[0, 1, 1]");
  EXPECT_EQ(place_text({}, 0), "[]");
}

}  // namespace
}  // namespace systole
