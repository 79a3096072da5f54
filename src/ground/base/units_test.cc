#include "ground/base/units.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(Units, divide_into_seconds) {
  const Seconds t = Bytes(1'000'000) / BytesPerSecond(1e9);
  EXPECT_DOUBLE_EQ(t.count(), 1e-3);
  EXPECT_DOUBLE_EQ((Flops(10) / FlopRate(5.0)).count(), 2.0);
  EXPECT_DOUBLE_EQ((DollarsPerHour(3.6) * Seconds(1000.0)).count(), 1.0);
}

TEST(Units, money_is_bought_and_spent_by_the_hour) {
  EXPECT_EQ(DollarsPerHour(3.6) * Seconds(1000.0), Seconds(1000.0) * DollarsPerHour(3.6));
  EXPECT_DOUBLE_EQ((Dollars(5) / DollarsPerHour(2.5)).count(), 7200.0);
  EXPECT_DOUBLE_EQ((DollarsPerHour(88.0) / Chips(8)).count(), 11.0);
  EXPECT_DOUBLE_EQ((DollarsPerChipHour(4.2) * Chips(64)).count(), 268.8);
  EXPECT_DOUBLE_EQ((FlopRate(459e12) / DollarsPerChipHour(4.2)).count(), 459e12 * 3600 / 4.2);
}

TEST(Units, do_not_mix) {
  static_assert(!std::is_convertible_v<Dollars, DollarsPerHour>);
  static_assert(!std::is_convertible_v<Bytes, Flops>);
  static_assert(!std::is_convertible_v<std::int64_t, Bytes>);
  static_assert(!std::is_constructible_v<Bytes, double>);
}

TEST(Units, print_with_their_unit) {
  EXPECT_EQ(to_string(Bytes(512)), "512 B");
  EXPECT_EQ(to_string(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(to_string(Bytes(100) * (1 << 20)), "100 MiB");
  EXPECT_EQ(to_string(Flops(1'912'602'624)), "1.91 GFLOP");
  EXPECT_EQ(to_string(Seconds()), "0 s");
  EXPECT_EQ(to_string(Seconds(0.0123)), "12.3 ms");
  EXPECT_EQ(to_string(Seconds(125.0)), "2 min 05 s");
  EXPECT_EQ(to_string(Seconds(7260.0)), "2 h 01 min");
  EXPECT_EQ(to_string(Dollars(-1.5)), "-$1.50");
  EXPECT_EQ(to_string(Dollars(999.99)), "$999.99");
  EXPECT_EQ(to_string(Dollars(8495.04)), "$8,495.04");
  EXPECT_EQ(to_string(Dollars(1634164.08)), "$1,634,164");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(999), "999");
}

}  // namespace
}  // namespace systole
