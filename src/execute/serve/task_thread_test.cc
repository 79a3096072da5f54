#include "execute/serve/task_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <stdexcept>
#include <vector>

namespace systole {
namespace {

TEST(TaskThread, runs_tasks_in_turn_also_after_one_that_throws) {
  TaskThread thread;
  std::vector<int> ran;
  std::promise<void> all;
  for (int i = 0; i < 3; ++i) thread.post([&ran, i] { ran.push_back(i); });
  thread.post([] { throw std::runtime_error("wrong"); });
  thread.poster()([&] { all.set_value(); });
  ASSERT_EQ(all.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2}));
}

TEST(TaskThread, what_waits_or_comes_at_its_end_is_dropped) {
  std::optional<TaskThread> thread(std::in_place);
  const auto poster = thread->poster();
  const auto held = std::make_shared<bool>(false);  // whether one ran
  std::promise<void> begun, may_end;
  thread->post([&] {
    begun.set_value();
    may_end.get_future().wait_for(std::chrono::seconds(20));
    poster([held] { *held = true; });
  });
  begun.get_future().wait();
  thread->post([held] { *held = true; });
  std::thread ends([&] { thread.reset(); });
  while (held.use_count() > 1) std::this_thread::yield();  // until what waits is dropped
  may_end.set_value();
  ends.join();
  poster([held] { *held = true; });
  EXPECT_FALSE(*held);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace systole
