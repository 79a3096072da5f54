#include "predict/plan/feed_plan.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

// A storage that serves small reads slowly, one thread after another; the cache is fast.
FeedSpeed slow_storage() {
  return {{{1, 20, true}, {2, 40, true}, {4, 78, true}, {8, 80, true}, {1, 5000, false}, {2, 5100, false}},
          Seconds(1e-4),
          Seconds(0.0),
          "systole data probe of 2026-11-28"};
}

FeedNeed need(double step) { return {.rows = 10, .row_bytes = 2000, .step = Seconds(step)}; }

TEST(FeedPlan, TakesTheFewestThreadsThatAreEnough) {
  // 18 rows/s, and 22.5 with a quarter to spare: one thread gives 20.
  const PlannedFeed feed = plan_feed(need(10 / 18.0), slow_storage());
  EXPECT_EQ(feed.readers, 2);
  EXPECT_EQ(feed.queue, 4);
  EXPECT_DOUBLE_EQ(feed.rows_per_second, 18);
  EXPECT_DOUBLE_EQ(feed.given, 40);
  EXPECT_EQ(feed.wait, Seconds());
  EXPECT_EQ(feed.remedy, "");
  EXPECT_FALSE(feed.unknown);
}

TEST(FeedPlan, AStarvedStepTakesAsLongAsItsRows) {
  // 10 rows in 50 ms are 200 rows/s; 4 threads give 78, and 8 hardly more.
  const PlannedFeed feed = plan_feed(need(0.05), slow_storage());
  EXPECT_EQ(feed.readers, 4);
  EXPECT_NEAR((feed.wait + Seconds(0.05)).count(), 10 / 78.0, 1e-12);
  EXPECT_NE(feed.remedy.find("data.folder on storage that gives 400 kB/s"), std::string::npos) << feed.remedy;
  EXPECT_NE(feed_text(feed, Seconds(0.1282)).find("feed: STARVES: 10 rows a step, 200 rows/s"), std::string::npos)
      << feed_text(feed, Seconds(0.1282));
}

TEST(FeedPlan, WhatTheWorkloadSaysIsKeptAndTheBetterNumberTold) {
  FeedNeed fixed = need(0.05);
  fixed.readers = 1;
  const PlannedFeed feed = plan_feed(fixed, slow_storage());
  EXPECT_EQ(feed.readers, 1);
  EXPECT_NEAR(feed.wait.count(), 0.5 - 0.05, 1e-12);
  EXPECT_EQ(feed.remedy, "data.readers: 4 gives 3.9 x as many rows");
}

TEST(FeedPlan, MoreThreadsThanWereMeasuredAreNeverPromised) {
  FeedSpeed grows = slow_storage();
  grows.rates[3].rows_per_second = 150;
  const PlannedFeed feed = plan_feed(need(0.05), grows);
  EXPECT_EQ(feed.readers, 8);
  EXPECT_EQ(feed.remedy, "data.readers: 16 may give more: the rate still grows with threads");
}

// Only the first epoch reads the storage if the shards stay in memory.
TEST(FeedPlan, LaterEpochsComeFromTheCache) {
  FeedNeed many = need(0.05);
  many.steps = 1000, many.epoch_steps = 100;
  const Seconds each = plan_feed(many, slow_storage()).wait;
  many.stays_in_memory = true;
  EXPECT_NEAR(plan_feed(many, slow_storage()).wait.count(), each.count() / 10, 1e-12);
}

TEST(FeedPlan, UnknownIsNeitherZeroNorEnough) {
  const PlannedFeed none = plan_feed(need(0.05), std::nullopt);
  EXPECT_EQ(none.given, 0);
  EXPECT_EQ(none.wait, Seconds());
  EXPECT_EQ(none.readers, 1);
  EXPECT_EQ(none.queue, 3);
  EXPECT_EQ(feed_text(none, Seconds(0.05)),
            "feed: 10 rows a step, 200 rows/s, 400 kB/s of shards; what the reader gives is not measured: systole data "
            "probe --save measures it\n");
  FeedNeed no_step = need(1);
  no_step.step = std::nullopt;
  EXPECT_EQ(plan_feed(no_step, slow_storage()).unknown, "the time of a step is unknown");
}

TEST(FeedPlan, BetweenMeasuredNumbersOfThreadsAndNotBeyondThem) {
  EXPECT_DOUBLE_EQ(*rows_per_second(slow_storage(), 3, true), 59);
  EXPECT_DOUBLE_EQ(*rows_per_second(slow_storage(), 64, true), 80);
  EXPECT_DOUBLE_EQ(*rows_per_second(slow_storage(), 4, false), 5100);
  EXPECT_FALSE(rows_per_second({}, 1, true));
}

TEST(FeedPlan, AStorageThatFaltersGetsADeeperQueue) {
  FeedSpeed speed = slow_storage();
  speed.hiccup = Seconds(1.3);
  EXPECT_EQ(plan_feed(need(0.4), speed).queue, 2 + 2 + 3);
}

}  // namespace
}  // namespace systole
