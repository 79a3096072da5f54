// budget-is-a-contract: nothing begins without a known price. A run saves and stops at its budget, exceeding it by at
// most one step, however often it was killed; its cost is the price times the seconds in its ledger, which are those of
// the test's own clock. With a larger budget it goes on, to the same bytes as an unlimited run.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <future>
#include <iterator>
#include <thread>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

class BudgetIsAContract : public ::testing::Test {
 protected:
  // A dollar per second; every step is delayed.
  std::vector<std::string> words(const std::string& run, const std::string& dollars,
                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"run", "job.yaml", "--folder", run, "--inject", "logging=200ms"};
    for (const std::string& set : {std::string("train.steps=100"), std::string("checkpoint.every=never"),
                                   std::string("resources.price=3600"), "objective.budget=" + dollars})
      all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  struct Held {  // an interval of the ledger, in seconds of Unix time
    long long begin = 0, end = 0;
    int code = -1;
  };
  std::vector<Held> ledger(const std::string& run) const {
    std::ifstream file(shop_.path(run + "/ledger"));
    std::vector<Held> turns;
    std::string word, id;
    for (long long restart = 0, seconds = 0, last = 0; file >> word >> id >> restart >> seconds >> last;) {
      if (word == "began") turns.push_back({seconds, 0, -1});
      if (word == "ended" && !turns.empty()) turns.back().end = seconds, turns.back().code = static_cast<int>(last);
    }
    return turns;
  }
  long long cost(const std::string& run) const {
    long long sum = 0;
    for (const Held& turn : ledger(run)) sum += turn.end - turn.begin;
    return sum;
  }

  // A process, and what the test's own clock says of it in Unix time: when it was started, when the test saw its
  // interval in the ledger, when it last wrote an event or a line of a log, and when it had ended.
  struct Watched {
    Captured done;
    double started = 0, seen = 0, wrote = 0, ended = 0;
  };
  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  double last_written(const std::string& run) const {
    double last = 0;
    for (const char* of : {"/events", "/logs"}) {
      std::error_code absent;
      for (const auto& entry : std::filesystem::directory_iterator(shop_.path(run + of), absent)) {
        if (!entry.is_regular_file()) continue;
        const auto at = std::filesystem::file_time_type::clock::to_sys(entry.last_write_time());
        last = std::max(last, std::chrono::duration<double>(at.time_since_epoch()).count());
      }
    }
    return last;
  }
  Watched watched(const std::string& run, const std::vector<std::string>& words) const {
    const std::size_t turns = ledger(run).size();
    Watched process;
    process.started = now();
    std::future<Captured> done = std::async(std::launch::async, [&] { return shop_.systole(words); });
    while (done.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready)
      if (process.seen == 0 && ledger(run).size() > turns) process.seen = now();
    process.done = done.get();
    process.ended = now();
    if (process.seen == 0) process.seen = process.ended;
    process.wrote = last_written(run);
    return process;
  }
  // The ledger rounds both ends down to whole seconds, so the time charged errs by less than a second. It lies between
  // the time from seeing the interval to the last event, and that of the whole process.
  static void expect_charged(const Held& turn, const Watched& process) {
    const auto second = [](double time) { return static_cast<long long>(std::floor(time)); };
    EXPECT_GE(turn.begin, second(process.started));
    EXPECT_LE(turn.begin, second(process.seen));
    EXPECT_GE(turn.end, second(process.wrote));
    EXPECT_LE(turn.end, second(process.ended));
    EXPECT_LT(static_cast<double>(turn.end - turn.begin), process.ended - process.started + 1);
    EXPECT_GT(static_cast<double>(turn.end - turn.begin), process.wrote - process.seen - 1);
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

  void expect_stopped(const std::string& run, const Watched& process, long long budget, long long least) const {
    const Captured& done = process.done;
    EXPECT_EQ(done.exit.code, 77) << done.out << done.err;
    EXPECT_TRUE(has(done.err + done.out, "50% of the budget is used")) << done.err;
    EXPECT_TRUE(has(done.err + done.out, "90% of the budget is used")) << done.err;
    EXPECT_TRUE(has(done.out + done.err, "its budget is used")) << done.out << done.err;
    EXPECT_LE(cost(run), budget);
    EXPECT_GE(cost(run), least) << "it stops no earlier than it must";
    ASSERT_FALSE(ledger(run).empty());
    EXPECT_EQ(ledger(run).back().code, 77);
    expect_charged(ledger(run).back(), process);
    const Stopped stopped = last_of<Stopped>(shop_.events(run));
    EXPECT_EQ(stopped.reason, "budget");
    EXPECT_TRUE(stopped.saved);
    EXPECT_GT(stopped.step, 0);
    EXPECT_LT(stopped.step, 100);
  }
  void expect_goes_on(const std::string& run, std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"resume", run, "--set", "objective.budget=1000"};
    all.insert(all.end(), more.begin(), more.end());
    const std::int64_t saved = shop_.newest_saved(run);
    EXPECT_GT(saved, 0);
    const Captured resumed = shop_.systole(all);
    ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
    EXPECT_EQ(shop_.not_resumed(run, saved), "");
    std::vector<std::string> whole = {"run",   "job.yaml",        "--folder", "whole",
                                      "--set", "train.steps=100", "--set",    "checkpoint.every=never"};
    whole.insert(whole.end(), more.begin(), more.end());
    const Captured undisturbed = shop_.systole(whole);
    ASSERT_EQ(undisturbed.exit.code, 0) << undisturbed.err;
    EXPECT_EQ(shop_.state_hash(run, 100), shop_.state_hash("whole", 100));
  }

  const Workshop shop_;
};

TEST_F(BudgetIsAContract, a_run_saves_and_stops_at_it_and_goes_on_to_the_same_bytes) {
  expect_stopped("r", watched("r", words("r", "6")), 6, 4);
  const std::int64_t step = last_of<Stopped>(shop_.events("r")).step;
  // Restarted with no budget left: before the first step it cannot know the step time.
  const Captured again = shop_.systole(words("r", "6", {"--or-resume"}));
  EXPECT_EQ(again.exit.code, 77) << again.err;
  EXPECT_LE(last_of<Stopped>(shop_.events("r")).step, step + 1);
  expect_goes_on("r");
}

TEST_F(BudgetIsAContract, what_a_killed_process_took_counts_and_the_time_when_there_was_none_does_not) {
  std::vector<std::string> killed = words("k", "8");
  killed[5] = "logging=200ms,kill=update@12";
  const Watched first = watched("k", killed);
  EXPECT_EQ(first.done.exit.signal, SIGKILL);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  expect_stopped("k", watched("k", words("k", "8", {"--or-resume"})), 8, 6);
  const std::vector<Held> turns = ledger("k");
  ASSERT_EQ(turns.size(), 2u);
  expect_charged(turns[0], first);
  EXPECT_EQ(turns[0].code, 137);
  EXPECT_GE(turns[0].end - turns[0].begin, 1) << "12 steps of 200 ms";
  EXPECT_GE(turns[1].begin - turns[0].end, 2);
}

TEST_F(BudgetIsAContract, ranks_stop_together) {
  const std::vector<std::string> two = {"--ranks", "2", "--set", "mesh={data: 2}"};
  expect_stopped("two", watched("two", words("two", "12", two)), 12, 8);
  expect_goes_on("two", {"--ranks", "2", "--set", "mesh={data: 2}"});
}

TEST_F(BudgetIsAContract, a_program_of_ones_own_has_its_notice_before) {
  shop_.write("own.yaml",
              "systole: 1\nname: own\ncommand: [sh, -c, \"trap 'echo saved; exit 0' TERM; while :; do sleep 0.1; "
              "done\"]\nranks: { notice: 3s }\nresources: { price: 3600 }\nobjective: { budget: 6 }\n");
  const Watched process = watched("own", {"run", "own.yaml", "--folder", "own"});
  const Captured& done = process.done;
  EXPECT_EQ(done.exit.code, 77) << done.out << done.err;
  EXPECT_TRUE(has(done.out, "its budget is used: stopped with its state saved")) << done.out << done.err;
  EXPECT_LE(cost("own"), 6);
  EXPECT_GE(cost("own"), 2);
  ASSERT_EQ(ledger("own").size(), 1u);
  expect_charged(ledger("own")[0], process);
}

TEST_F(BudgetIsAContract, no_price_is_no_beginning) {
  const auto refused = [&](std::vector<std::string> all) {
    const Captured none = shop_.systole(std::move(all));
    EXPECT_EQ(none.exit.code, 2) << none.out;
    EXPECT_TRUE(has(none.err, "objective.budget: nobody knows what an hour of")) << none.err;
    EXPECT_TRUE(has(none.err, "resources.price: DOLLARS")) << none.err;
  };
  refused({"run", "job.yaml", "--folder", "none", "--set", "objective.budget=5"});
  refused({"render", "job.yaml", "--on", "slurm", "--out", "none", "--set", "objective.budget=5"});
  EXPECT_FALSE(std::filesystem::exists(shop_.path("none")));
  const Captured free = shop_.systole({"run", "job.yaml", "--set", "resources.price=0"});
  EXPECT_TRUE(has(free.err, "is no sum of dollars")) << free.err;
}

}  // namespace
}  // namespace systole::laws
