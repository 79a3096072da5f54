#include "ground/catalog/dated.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(Dated, dates) {
  for (const char* date : {"2026-07-30", "2026-07", "2026", "2024-02-29"}) EXPECT_TRUE(is_partial_date(date)) << date;
  for (const char* none :
       {"", "2026-7-30", "2026-13", "2026-02-30", "2025-02-29", "yesterday", "20260730", "2026-07-30 "})
    EXPECT_FALSE(is_partial_date(none)) << none;
  EXPECT_TRUE(is_date("2026-07-30"));
  EXPECT_FALSE(is_date("2026-07"));
}

TEST(Dated, ages) {
  EXPECT_EQ(days_since("2026-07-30", "2026-11-22"), 115);
  EXPECT_EQ(days_since("2026-11-22", "2026-11-22"), 0);
  EXPECT_EQ(days_since("2026-11-23", "2026-11-22"), -1);
  EXPECT_EQ(days_since("2026-09", "2026-09-17"), 16);
  EXPECT_EQ(days_since("2026", "2026-03-01"), 59);
  EXPECT_EQ(days_since("", "2026-03-01"), std::nullopt);
}

TEST(Dated, old_is_said_to_be_old) {
  EXPECT_FALSE(is_old("2026-07-30", "2026-10-28", kPriceIsOldAfter));
  EXPECT_TRUE(is_old("2026-07-30", "2026-10-29", kPriceIsOldAfter));
  EXPECT_TRUE(is_old("", "2026-10-29", kFactIsOldAfter));
  EXPECT_EQ(age_text("2026-07-30", "2026-10-28", kPriceIsOldAfter), "2026-07-30");
  EXPECT_EQ(age_text("2026-07-30", "2026-11-22", kPriceIsOldAfter), "2026-07-30, 115 days old");
  EXPECT_EQ(age_text("", "2026-11-22", kPriceIsOldAfter), "no date");
}

}  // namespace
}  // namespace systole
