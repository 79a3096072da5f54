#include "operate/launch/local_ranks.h"

#include <fcntl.h>

#include "operate/launch/testing/launch_fixture.h"

namespace systole {
namespace {

class OnOneNode : public LaunchFixture {
 protected:
  std::unique_ptr<LocalRanks> make() { return LocalRanks::make(folder_, options_.line).value(); }
  std::vector<RankExited> until_ended(LocalRanks& ranks) {
    std::vector<RankExited> ended;
    for (int i = 0; i < 3000 && !ranks.empty(); ++i) {
      for (const RankExited& exit : ranks.poll(Seconds(0.01))) ended.push_back(exit);
    }
    return ended;
  }
};

TEST_F(OnOneNode, ends_are_told_the_gravest_first) {
  const auto ranks = make();
  ASSERT_TRUE(ranks->start(1, 0, {.argv = {"sh", "-c", "exit 3"}}).ok());
  ASSERT_TRUE(ranks->start(1, 1, {.argv = {"sh", "-c", "kill -9 $$"}}).ok());
  while (runs(ranks->pid_of(0)) || runs(ranks->pid_of(1))) ::usleep(1000);
  const std::vector<RankExited> ended = ranks->poll(Seconds(0.01));
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].rank, 1);
  EXPECT_EQ(ended[0].signal, SIGKILL);
  EXPECT_EQ(ended[1].code, 3);
}

TEST_F(OnOneNode, all_that_was_said_before_the_end_is_heard) {
  const auto ranks = make();
  ASSERT_TRUE(ranks->start(1, 0, {.argv = {"sh", "-c", "seq 1 20000"}}).ok());
  until_ended(*ranks);
  EXPECT_TRUE(has(said_, "[rank 0] 20000\n"));
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 20'000);
}

TEST_F(OnOneNode, a_log_on_a_full_disk_ends_nobody) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  ASSERT_EQ(::symlink("/dev/full", (folder_ + "/" + LocalRanks::log_name(1, 0)).c_str()), 0);
  const auto ranks = make();
  ASSERT_TRUE(ranks->start(1, 0, {.argv = {"sh", "-c", "echo one; echo two"}}).ok());
  const std::vector<RankExited> ended = until_ended(*ranks);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].code, 0);
  EXPECT_TRUE(has(said_, "cannot write the log of this rank")) << said_;
  EXPECT_TRUE(has(said_, "[rank 0] two\n"));
}

TEST_F(OnOneNode, no_descriptor_of_the_agent_reaches_a_rank) {
  const auto ranks = make();
  const Fd ours(::open("/dev/null", O_RDONLY));
  ASSERT_TRUE(ranks->start(1, 0, {.argv = {"sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"}}).ok());
  until_ended(*ranks);
  EXPECT_EQ(said_, "[rank 0] 0 1 2 3 \n") << "3 is ls's own";
}

}  // namespace
}  // namespace systole
