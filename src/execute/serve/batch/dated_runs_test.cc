// A scheduled job on a clock that tests move.
#include "execute/serve/batch/dated_runs.h"

#include <gtest/gtest.h>

#include "execute/serve/batch/batch_journal.h"

namespace systole {
namespace {

constexpr std::int64_t kStart = 946'684'800;  // the fake clock's: 2000-01-01T00:00Z, a Saturday
constexpr std::int64_t kHour = 3600, kDay = 24 * kHour;

class DatedRunsTest : public testing::Test {
 protected:
  CronSchedule schedule(const std::string& yaml) { return read_schedule(parse_yaml(yaml, "job.yaml").value()).value(); }
  std::int64_t now() { return clock_.unix_time() - kStart; }

  // Until so many runs were begun; each takes `duration`, and is whole unless `cut` says otherwise.
  std::vector<std::int64_t> begun(const CronSchedule& schedule, std::size_t runs, std::int64_t duration) {
    const DatedRuns dated(schedule, *store_, "out.jsonl");
    std::vector<std::int64_t> begun;
    DatedRunner runner;
    runner.run = [&](std::int64_t due, bool goes_on) -> Result<bool> {
      begun.push_back(due - kStart);
      EXPECT_GE(now(), begun.back());
      went_on_ = goes_on;
      const BatchOutput output{*store_, schedule.name_of(due) + "/out.jsonl"};
      const auto journal = BatchJournal::open(output, {1, "m", "i", "o"}, 0).value();
      clock_.advance(Seconds(static_cast<double>(duration)));
      if (is_cut_) return false;
      if (fails_) return error(ErrorKind::not_found, "no input");
      if (!journal->has(0)) journal->append({.row = 0, .line = "x"}).value();
      journal->finish().value();
      return begun.size() < runs;
    };
    runner.failed = [&](std::int64_t, const Error& error) { told_ = error.message; };
    runner.waits = [&](std::int64_t next) { next_ = next - kStart; };
    runner.stops = [&] { return begun.size() >= runs; };
    follow_schedule(dated, runner, clock_).value();
    return begun;
  }

  const std::unique_ptr<Store> store_ = make_memory_store();
  FakeClock clock_;
  bool is_cut_ = false, fails_ = false, went_on_ = false;
  std::string told_;
  std::int64_t next_ = 0;
};

using Times = std::vector<std::int64_t>;

// What is made of the output lies beside it before the run is finished; moved away later, it is not made again.
TEST_F(DatedRunsTest, are_finished_with_what_is_made_of_the_output) {
  const CronSchedule nightly = schedule("{ cron: 30 2 * * * }");
  const std::int64_t due = nightly.next(kStart);
  const std::string folder = nightly.name_of(due) + "/";
  const DatedRuns dated(nightly, *store_, "out.jsonl");
  const auto journal = [&] {
    return BatchJournal::open({*store_, folder + "out.jsonl"}, {1, "m", "i", "o"}, 0).value();
  };
  {
    const auto begun = journal();
    begun->append({.row = 0, .line = "x"}).value();
    EXPECT_FALSE(begun->finish([]() -> Status { return error(ErrorKind::no_space, "full"); }).ok());
  }
  EXPECT_EQ(read_text(*store_, folder + "out.jsonl").value(), "x\n");
  EXPECT_EQ(dated.cut_short().value(), due);
  journal()->finish([&] { return write_whole(*store_, folder + "v.npy", "x"); }).value();
  EXPECT_FALSE(dated.cut_short().value());
  store_->remove(folder + "v.npy").value();
  EXPECT_FALSE(dated.cut_short().value());
}

TEST_F(DatedRunsTest, begin_at_their_times_in_folders_of_their_own) {
  const CronSchedule nightly = schedule("{ cron: 30 2 * * *, time_zone: Europe/Berlin }");
  EXPECT_EQ(begun(nightly, 3, kHour), (Times{kHour * 3 / 2, kDay + kHour * 3 / 2, 2 * kDay + kHour * 3 / 2}));
  EXPECT_EQ(store_->list("").value(),
            (std::vector<std::string>{"2000-01-01T02-30+0100/", "2000-01-02T02-30+0100/", "2000-01-03T02-30+0100/"}));
  EXPECT_EQ(next_, 2 * kDay + kHour * 3 / 2);
}

// A run takes two and a half hours: of the hours that pass meanwhile the last one counts, never two at once.
TEST_F(DatedRunsTest, that_are_missed_are_made_up_once) {
  EXPECT_EQ(begun(schedule("0 * * * *"), 4, kHour * 5 / 2), (Times{0, 2 * kHour, 5 * kHour, 7 * kHour}));
}

TEST_F(DatedRunsTest, start_late_only_within_their_time) {
  const CronSchedule nightly = schedule("{ cron: 0 0 * * *, start_within: 2h }");
  clock_.advance(Seconds(2.0 * kHour));
  EXPECT_EQ(begun(nightly, 1, 0), Times{0}) << "the machine was off until two hours later";
  clock_.advance(Seconds(1.0 * kDay + 60));
  EXPECT_EQ(begun(nightly, 1, 0), Times{2 * kDay}) << "a minute too late for the one before";
}

TEST_F(DatedRunsTest, that_were_cut_short_go_on_first) {
  const CronSchedule nightly = schedule("0 0 * * *");
  is_cut_ = true;
  EXPECT_EQ(begun(nightly, 1, kHour), Times{0});
  is_cut_ = false;
  clock_.advance(Seconds(23.0 * kHour + 60));  // the next one is due
  EXPECT_EQ(begun(nightly, 2, 60), (Times{0, kDay}));
  EXPECT_FALSE(went_on_);
  // What was moved away is finished all the same.
  store_->remove("2000-01-02T00-00Z/out.jsonl").value();
  EXPECT_EQ(begun(nightly, 1, 60), Times{2 * kDay});
}

TEST_F(DatedRunsTest, that_fail_are_told_and_the_next_one_begins_at_its_time) {
  fails_ = true;
  EXPECT_EQ(begun(schedule("0 0 * * *"), 2, 60), (Times{0, kDay}));
  EXPECT_EQ(told_, "no input");
  fails_ = false;
  EXPECT_EQ(begun(schedule("0 0 * * *"), 1, 60), Times{kDay}) << "another start tries it again";
  EXPECT_TRUE(went_on_);
}

}  // namespace
}  // namespace systole
