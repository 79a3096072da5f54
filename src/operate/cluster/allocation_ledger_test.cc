#include "operate/cluster/allocation_ledger.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "operate/cluster/cluster.h"

namespace systole {
namespace {

TEST(Ledger, is_time_from_begin_to_end_of_each_turn) {
  const auto intervals = read_ledger("began 17 0 1000 4\nended 17 0 1100 75\nbegan 17 1 1200 4\nended 17 1 1250 0\n");
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].code, 75);
  EXPECT_EQ(intervals[1].restart, 1);
  EXPECT_EQ(allocated_seconds(intervals, 9999), 150);
  EXPECT_EQ(node_seconds(intervals, 9999), 600);
}

TEST(Ledger, a_killed_turn_lasts_to_the_next_and_the_last_one_to_now) {
  const auto intervals = read_ledger("began 17 0 1000 2\nbegan 17 1 1060 2\n");
  EXPECT_EQ(allocated_seconds(intervals, 1100), 100);
  EXPECT_EQ(node_seconds(intervals, 1100), 200);
  EXPECT_EQ(allocated_seconds(intervals, 0), 60) << "a clock that is behind takes nothing away";
}

TEST(Ledger, a_killed_turn_ends_where_its_target_says) {
  const std::string killed = "began 3_0 0 1000 2\nbegan 3_0 1 1060 2\nbegan 3_1 0 1000 1\n";
  const auto ended = [&](std::vector<JobStatus> jobs) {
    auto intervals = read_ledger(killed);
    end_by(intervals, jobs);
    return intervals;
  };
  const JobStatus job{.id = "3_0", .state = RunState::failed, .ended_at = 1100},
      task{.id = "3_1", .state = RunState::stopped, .ended_at = 1010};
  EXPECT_TRUE(goes_on(read_ledger(killed)));
  EXPECT_EQ(allocated_seconds(ended({job, task}), 9999), 60 + 40 + 10);
  EXPECT_FALSE(goes_on(ended({job, task})));
  EXPECT_TRUE(goes_on(ended({job}))) << "the task goes on";
  JobStatus other = job;
  other.state = RunState::preempted;
  EXPECT_TRUE(goes_on(ended({other, task}))) << "it is not over";
  other = job;
  other.ended_at = 0;
  EXPECT_TRUE(goes_on(ended({other, task}))) << "nobody knows when";
  other.ended_at = 1050;
  EXPECT_EQ(allocated_seconds(ended({other, task}), 9999), 60 + 10) << "by a clock that is behind";
  EXPECT_EQ(allocated_seconds(read_ledger(killed + "began 18 0 1500 2\nended 18 0 1600 0\n"), 9999),
            60 + 440 + 500 + 100)
      << "whoever sent it again knew that it was over";
  auto told = read_ledger("began 3_0 0 1000 2\nended 3_0 0 1040 0\n");
  end_by(told, {&job, 1});
  EXPECT_EQ(allocated_seconds(told, 9999), 40) << "what it told itself counts";
}

TEST(Ledger, takes_what_a_target_tells_beyond_it_once) {
  const std::string lines = "began 3 0 1000 2\nended 3 0 1000 76\nbegan 3 1 1000 2\nended 3 1 1040 75\n";
  const std::vector<AllocationInterval> ledger = read_ledger("began 3 0 1000 2\n"), told = read_ledger(lines);
  std::vector<AllocationInterval> known = ledger;
  merge_intervals(known, told);
  EXPECT_EQ(known, told) << "two began in one second";
  EXPECT_EQ(lines_beyond(ledger, known), lines) << "the first one lacked its end";
  merge_intervals(known, told);
  EXPECT_EQ(known, told);
  EXPECT_EQ(lines_beyond(known, told), "");
  known.pop_back();
  EXPECT_EQ(lines_beyond(known, told), "began 3 1 1000 2\nended 3 1 1040 75\n");
  known = told;
  const std::vector<AllocationInterval> recounted = read_ledger("began 3 0 1100 2\n");
  merge_intervals(known, recounted);
  EXPECT_EQ(lines_beyond(told, known), "began 3 2 1100 2\n") << "by who no longer knows of the first two";
}

TEST(Ledger, of_a_job_whose_target_is_sure_it_takes_the_end_and_nothing_older) {
  const std::vector<AllocationInterval> ledger = read_ledger("began 3 0 1000 2\n");
  std::vector<AllocationInterval> known = ledger;
  JobStatus job{.id = "3", .state = RunState::running, .sure = true};
  job.allocations = {{"3", 0, 990, 2, {}, {}}};
  merge_allocations(known, {&job, 1});
  EXPECT_EQ(known, ledger) << "of the first one a pod is left that began before";
  job.state = RunState::failed;
  job.ended_at = 1100;
  job.exit_code = 3;
  for (int i = 0; i < 2; ++i) {
    merge_allocations(known, {&job, 1});
    EXPECT_EQ(known, read_ledger("began 3 0 1000 2\nended 3 0 1100 3\n"));
  }
  job.sure = false;
  known = ledger;
  job.allocations.clear();
  merge_allocations(known, {&job, 1});
  EXPECT_EQ(known, ledger) << "it writes its ledger itself";
}

TEST(Ledger, tasks_of_an_array_count_each) {
  const auto intervals = read_ledger("began 3_0 0 10 1\nbegan 3_1 0 10 1\nended 3_1 0 30 0\nended 3_0 0 20 1\n");
  EXPECT_EQ(allocated_seconds(intervals, 50), 30);
  EXPECT_EQ(intervals[0].code, 1);
  EXPECT_EQ(intervals[1].code, 0);
}

TEST(Ledger, what_is_brought_home_twice_is_there_once) {
  const std::string first = "began 17 0 1000 4\n", second = "ended 17 0 1100 75\n", third = "began 17 1 1200 4\n";
  EXPECT_EQ(with_lines_of("", first), first);
  EXPECT_EQ(with_lines_of(first, first + second), first + second);
  EXPECT_EQ(with_lines_of(first + second, third), first + second + third)
      << "another machine's, who has none of before";
  EXPECT_EQ(with_lines_of(first, first + second + "began 17 1"), first + second) << "a torn line is waited for";
  EXPECT_EQ(with_lines_of("began 1", first), "began 1\n" + first);
}

TEST(Ledger, leaves_out_what_is_no_line_of_it) {
  const auto intervals = read_ledger(
      "began 17 0 1000\n\nbegan 17 x 1000 4\nbegan 17 -1 1000 4\nended 17 0 1000 0\nnonsense 1 2 3 4\n"
      "began 17 0 1000 4 5\nbegan 99999999999999999999 0 5 1\nended 17 0 11");
  ASSERT_EQ(intervals.size(), 1u);
  EXPECT_EQ(intervals[0].id, "99999999999999999999");
}

TEST(Ledger, is_its_owners_alone) {
  std::string folder = (std::filesystem::temp_directory_path() / "systole-ledger-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  add_to_ledger(folder + "/ledger", "began 1 0 100 2\n").value();
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(folder + "/ledger").permissions(), perms::owner_read | perms::owner_write);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace systole
