#include "execute/train/waits.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TimeByCategory step(double waited, double computed) {
  TimeByCategory time;
  time[Category::data_wait] = Seconds(waited);
  time[Category::compute] = Seconds(computed);
  return time;
}

TEST(WaitWatch, tells_once_of_steps_that_wait_for_rows) {
  WaitWatch watch;
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(watch.after_step(step(3, 1))) << i;
  const std::optional<Note> note = watch.after_step(step(3, 1));
  ASSERT_TRUE(note);
  EXPECT_EQ(note->level, "warning");
  EXPECT_EQ(note->what, "data");
  EXPECT_EQ(note->took, Seconds(15.0));
  EXPECT_NE(note->text.find("5 steps in a row waited for rows for 75% of their time"), note->text.npos) << note->text;
  EXPECT_NE(note->text.find("data.folder"), note->text.npos) << note->text;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(watch.after_step(step(3, 1)));
}

TEST(WaitWatch, a_step_that_did_not_wait_begins_the_row_anew) {
  WaitWatch watch;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.after_step(i % 5 == 4 ? step(1, 1) : step(3, 1))) << i;
}

TEST(WaitWatch, what_takes_no_time_is_not_told) {
  WaitWatch watch;
  for (int i = 0; i < 900; ++i) EXPECT_FALSE(watch.after_step(step(1e-3, 1e-4))) << i;
}

// The time of an evaluation or a save between two steps does not count as stepping time.
TEST(WaitWatch, only_the_stepping_counts) {
  WaitWatch watch;
  TimeByCategory time = step(3, 1);
  time[Category::evaluation] = Seconds(100.0);
  std::optional<Note> note;
  for (int i = 0; i < 5; ++i) note = watch.after_step(time);
  EXPECT_TRUE(note);
}

TEST(WaitWatch, tells_once_of_saves_that_wait) {
  WaitWatch watch;
  EXPECT_FALSE(watch.after_save(20, 10, Seconds(0.6)));
  const std::optional<Note> note = watch.after_save(30, 20, Seconds(0.6));
  ASSERT_TRUE(note);
  EXPECT_EQ(note->what, "checkpoint");
  EXPECT_DOUBLE_EQ(note->took.count(), 1.2);
  EXPECT_NE(note->text.find("the save of step 30 waited for that of step 20"), note->text.npos) << note->text;
  EXPECT_NE(note->text.find("checkpoint.every"), note->text.npos) << note->text;
  EXPECT_FALSE(watch.after_save(40, 30, Seconds(60.0)));
}

}  // namespace
}  // namespace systole
