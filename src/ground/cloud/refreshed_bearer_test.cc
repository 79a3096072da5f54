#include "ground/cloud/refreshed_bearer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace systole {
namespace {

TEST(RefreshedBearer, fetches_before_the_token_ends) {
  const auto clock = std::make_shared<FakeClock>();
  int fetched = 0;
  RefreshedBearer bearer(
      [&]() -> Result<BearerToken> {
        return BearerToken{fmt::format("t{}", ++fetched), Seconds(3600.0)};
      },
      clock);
  EXPECT_EQ(bearer.token().value(), "t1");
  clock->advance(Seconds(3374.0));
  EXPECT_EQ(bearer.token().value(), "t1");
  clock->advance(Seconds(2.0));
  EXPECT_EQ(bearer.token().value(), "t2") << "with 225 s left";
  bearer.refused("t1");
  EXPECT_EQ(bearer.token().value(), "t2") << "an old one was refused";
  bearer.refused("t2");
  EXPECT_EQ(bearer.token().value(), "t3");
}

TEST(RefreshedBearer, keeps_the_old_token_while_no_new_one_is_had) {
  const auto clock = std::make_shared<FakeClock>();
  bool works = true;
  int asked = 0;
  RefreshedBearer bearer(
      [&]() -> Result<BearerToken> {
        ++asked;
        if (!works) return error(ErrorKind::io, "no answer");
        return BearerToken{"t", Seconds(100.0)};
      },
      clock);
  EXPECT_EQ(bearer.token().value(), "t");
  works = false;
  clock->advance(Seconds(60.0));  // of 100 s, half is the most that is early
  EXPECT_EQ(bearer.token().value(), "t");
  EXPECT_EQ(bearer.token().value(), "t");
  EXPECT_EQ(asked, 2) << "not with every request";
  clock->advance(Seconds(50.0));
  EXPECT_EQ(bearer.token().error().message, "no answer");
  works = true;
  EXPECT_EQ(bearer.token().value(), "t");
}

TEST(RefreshedBearer, one_thread_fetches_for_all) {
  std::atomic<int> fetched = 0;
  RefreshedBearer bearer(
      [&]() -> Result<BearerToken> {
        ++fetched;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return BearerToken{"t", Seconds(3600.0)};
      },
      real_clock());
  std::vector<std::jthread> threads;
  std::atomic<int> got = 0;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { got += bearer.token().value() == "t"; });
  threads.clear();
  EXPECT_EQ(got, 8);
  EXPECT_EQ(fetched, 1);
}

}  // namespace
}  // namespace systole
