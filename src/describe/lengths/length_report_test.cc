#include "describe/lengths/length_report.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

LengthHistogram texts() {
  LengthHistogram texts;
  texts.add(10, 50);
  texts.add(60, 40);
  texts.add(300, 10);  // 256 and 44
  return texts;
}

const LengthWay& way(const LengthReport& report, std::string_view name) {
  for (const LengthWay& one : report.ways)
    if (one.name == name) return one;
  ADD_FAILURE() << "no way " << name;
  return report.ways.front();
}

TEST(LengthReport, positions_of_each_way) {
  const LengthReport report = length_report(texts(), {.longest = 256, .best = {.shapes = 3, .align = 4}, .packed = 24});
  EXPECT_EQ(report.rows.count(), 110);
  EXPECT_EQ(report.edges, (std::vector<std::int64_t>{12, 60, 256}));
  EXPECT_EQ(way(report, "padded to 256").positions(), 110 * 256);
  EXPECT_EQ(way(report, "powers of two").positions(), 50 * 16 + 50 * 64 + 10 * 256);
  EXPECT_EQ(way(report, "3 buckets").positions(), 50 * 12 + 50 * 60 + 10 * 256);
  EXPECT_EQ(way(report, "packed").positions(), 24 * 256);
  EXPECT_NEAR(report.waste(), 1 - 5900.0 / 6160, 1e-12);
  EXPECT_NEAR(report.by_shapes[0].second, 1 - 5900.0 / (110 * 256), 1e-12);
  EXPECT_EQ(by_shapes_text(report), "least padding by the number of buckets: 1 79.0%, 2 31.1%, 4 1.7%\n");
}

TEST(LengthReport, flops_time_and_dollars) {
  RowPrices prices;
  prices.flops = [](std::int64_t length) { return 1e15 * static_cast<double>(length * length); };
  prices.rate = FlopRate(1e18 / 36);
  prices.dollars_per_hour = DollarsPerHour(10);
  const LengthReport report =
      length_report(texts(), {.longest = 256, .edges = {64, 256}, .packed = 24, .prices = prices});
  const LengthWay& buckets = way(report, "2 buckets");
  EXPECT_DOUBLE_EQ(*buckets.flops, 1e15 * (100 * 64 * 64 + 10 * 256 * 256));
  EXPECT_NEAR(buckets.time->count(), 36.0 * (1064.96), 1e-6);
  EXPECT_NEAR(buckets.dollars->count(), 0.1 * 1064.96, 1e-6);
  // Packed rows have the least padding here, yet attention over whole rows costs more than short buckets do.
  EXPECT_GT(*way(report, "packed").flops, *buckets.flops);
  EXPECT_EQ(to_node(report).find("ways")->items().size(), 4u);
}

}  // namespace
}  // namespace systole
