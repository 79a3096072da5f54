#include "ground/process/signal_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

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

// A closing terminal sends SIGHUP twice; Slurm's --signal=USR1 comes before its SIGTERM.
TEST(SignalWatch, hangup_and_usr1_ask_to_finish_and_never_to_leave_at_once) {
  for (const int number : {SIGHUP, SIGUSR1}) {
    const SignalWatch watch;
    std::raise(number);
    std::raise(number);
    EXPECT_EQ(watch.count(), 1);
    EXPECT_EQ(watch.signal(), number);
    std::raise(SIGTERM);
    EXPECT_FALSE(watch.stop_at_once());
    std::raise(SIGTERM);
    EXPECT_TRUE(watch.stop_at_once());
  }
}

TEST(SignalWatch, a_hangup_may_ask_to_reload_also_under_nohup) {
  for (const auto before : {SIG_DFL, SIG_IGN}) {
    std::signal(SIGHUP, before);
    {
      const SignalWatch watch(Hangup::reload);
      EXPECT_EQ(watch.reloads(), 0);
      std::raise(SIGHUP);
      std::raise(SIGHUP);
      EXPECT_EQ(watch.reloads(), 2);
      EXPECT_FALSE(watch.stop_requested());
      std::raise(SIGTERM);
      EXPECT_EQ(watch.signal(), SIGTERM);
      EXPECT_FALSE(watch.stop_at_once());
    }
    struct sigaction after {};
    ::sigaction(SIGHUP, nullptr, &after);
    EXPECT_EQ(after.sa_handler, before);
  }
  std::signal(SIGHUP, SIG_DFL);
}

TEST(SignalWatch, a_hangup_that_is_ignored_stays_ignored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const SignalWatch watch;
    std::raise(SIGHUP);
    EXPECT_FALSE(watch.stop_requested());
  }
  struct sigaction after {};
  ::sigaction(SIGHUP, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(SignalWatch, before_there_is_anything_to_save_a_signal_ends_the_process) {
  for (const auto& [number, code] : {std::pair(SIGINT, 130), {SIGTERM, 76}, {SIGHUP, 76}, {SIGUSR1, 76}}) {
    const auto stopped = [number = number] {
      SignalWatch watch;
      watch.end_at_once();
      std::raise(number);
    };
    EXPECT_EXIT(stopped(), testing::ExitedWithCode(code), "") << number;
  }
  SignalWatch watch;
  watch.end_at_once();
  watch.hold();
  std::raise(SIGTERM);
  EXPECT_EQ(watch.count(), 1);
}

TEST(SignalWatch, once_the_end_is_known_no_signal_changes_it) {
  const auto ended = [] {
    {
      SignalWatch watch;
      std::raise(SIGTERM);
      watch.end_is_known();
      std::raise(SIGTERM);
    }
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::raise(number);
    ::_exit(75);
  };
  EXPECT_EXIT(ended(), testing::ExitedWithCode(75), "");
}

}  // namespace
}  // namespace systole
