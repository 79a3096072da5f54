#include "ground/process/signal_watch.h"

#include <gtest/gtest.h>

#include "ground/base/error.h"

namespace systole {
namespace {

TEST(SignalWatch, counts_and_remembers_the_first) {
  const SignalWatch watch;
  EXPECT_FALSE(watch.stop_requested());
  EXPECT_EQ(watch.signal(), 0);
  std::raise(SIGTERM);
  EXPECT_TRUE(watch.stop_requested());
  EXPECT_FALSE(watch.stop_at_once());
  std::raise(SIGINT);
  EXPECT_TRUE(watch.stop_at_once());
  EXPECT_EQ(watch.count(), 2);
  EXPECT_EQ(watch.signal(), SIGTERM);
}

TEST(SignalWatch, is_one_and_puts_back_what_was) {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGINT, nullptr, &before);
  {
    const SignalWatch watch;
    EXPECT_THROW(SignalWatch(), Failure);
  }
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  const SignalWatch again;
  EXPECT_EQ(again.count(), 0);
}

}  // namespace
}  // namespace systole
