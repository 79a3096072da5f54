// resume-is-exact on ranks: runs that are killed at seeded moments and go on with other numbers of workers, drawn from
// 1 to 8, along data and fsdp, end with exactly the bits of one undisturbed worker.
//
// SYSTOLE_TEST_LONG=1 hits every phase several times, also in processes; SYSTOLE_TEST_SEED=n sets the first seed.

#include <gtest/gtest.h>

#include <bit>
#include <csignal>
#include <map>
#include <random>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

constexpr std::int64_t kSteps = 24;
constexpr const char* kPhases[] = {"gather", "compute", "reduce", "update", "snapshot", "write", "commit", "sweep"};

struct ExactEnd {
  std::string state;
  std::vector<std::string> losses;  // a line per step, numbers as bits
  bool operator==(const ExactEnd&) const = default;
};

class ExactOverRanks : public ::testing::Test {
 protected:
  static std::string mesh(const char* axis, int workers) {
    return workers == 1 ? "mesh={}" : fmt::format("mesh={{{}: {}}}", axis, workers);
  }

  // Begins a run, or goes on if it was killed after it had begun.
  std::vector<std::string> words(const std::string& run, const std::vector<std::string>& more) const {
    const bool begun = std::filesystem::exists(shop_.path(run + "/plan.json")) &&
                       std::filesystem::exists(shop_.path(run + "/workload.yaml"));
    std::vector<std::string> all =
        begun ? std::vector<std::string>{"resume", run} : std::vector<std::string>{"run", "job.yaml", "--folder", run};
    for (const std::string& set : {fmt::format("train.steps={}", kSteps), std::string("train.batch=8")})
      all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Captured ran(const std::string& run, const std::vector<std::string>& more) const {
    return shop_.systole(words(run, more), Seconds(300));
  }

  ExactEnd end_of(const std::string& run) const {
    ExactEnd end{shop_.state_hash(run, kSteps), {}};
    for (const StepEnded& s : canonical_steps(shop_.events(run))) {
      end.losses.push_back(fmt::format("step {} loss {:016x} norm {:016x} tokens {}", s.step,
                                       std::bit_cast<std::uint64_t>(s.loss),
                                       std::bit_cast<std::uint64_t>(s.gradient_norm), s.tokens));
    }
    return end;
  }

  const ExactEnd& one_worker() {
    if (one_.losses.empty()) {
      const Captured done = ran("one", {});
      EXPECT_EQ(done.exit.code, 0) << done.err;
      one_ = end_of("one");
      EXPECT_EQ(one_.losses.size(), static_cast<std::size_t>(kSteps));
    }
    return one_;
  }

  // Kills a run three times, each time in one of `phases` and with other workers, then lets it end.
  void killed_in(std::vector<std::string> phases, bool in_process, std::mt19937_64& random) {
    const ExactEnd whole = one_worker();
    int run = 0, resumed = 0;
    std::map<std::string, int> hit;
    std::map<int, int> workers_seen;
    while (!phases.empty()) {
      const std::string folder = fmt::format("killed-{}-{}", in_process ? "threads" : "processes", ++run);
      std::string story;
      const auto some_workers = [&](bool several) {
        const int workers = several ? 2 + static_cast<int>(random() % 7) : 1 + static_cast<int>(random() % 8);
        ++workers_seen[workers];
        std::vector<std::string> more{"--set", mesh(random() % 2 == 0 ? "data" : "fsdp", workers)};
        if (workers > 1 && in_process) more.emplace_back("--in-process");
        if (workers > 1 && !in_process) more.insert(more.end(), {"--max-restarts", "0"});
        story += more[1] + " ";
        return more;
      };
      for (int kill = 0; kill < 3 && !phases.empty(); ++kill) {
        const std::string phase = phases.back();
        phases.pop_back();
        std::vector<std::string> more = some_workers(phase == "gather" || phase == "reduce");
        // Saves come every fourth step: seven in three runs.
        const bool of_saves = phase == "snapshot" || phase == "write" || phase == "commit" || phase == "sweep";
        // Gathers and shards occur several times per step.
        const bool often = phase == "gather" || phase == "compute";
        const std::string at = fmt::format("kill={}@{}", phase, 1 + random() % (of_saves ? 2 : often ? 16 : 8));
        story += at + " ";
        more.insert(more.end(), {"--inject", at});
        const Captured killed = ran(folder, more);
        const bool alone = in_process || more[1] == "mesh={}";
        EXPECT_TRUE(alone ? killed.exit.signal == SIGKILL
                          : killed.exit.code != 0 && killed.err.find("SIGKILL") != killed.err.npos)
            << story << to_string(killed.exit) << "\n"
            << killed.out << killed.err;
        ++hit[phase];
      }
      const std::vector<std::string> last = some_workers(false);
      SCOPED_TRACE(fmt::format("SYSTOLE_TEST_SEED={} {}", test_seed(), story));
      const std::int64_t saved = shop_.newest_saved(folder);
      resumed += saved > 0 ? 1 : 0;
      const Captured done = ran(folder, last);
      ASSERT_EQ(done.exit.code, 0) << done.err;
      EXPECT_EQ(shop_.not_resumed(folder, saved), "");
      EXPECT_EQ(end_of(folder), whole);
      std::filesystem::remove_all(shop_.path(folder));
    }
    EXPECT_GT(resumed, 0) << "a run that was killed in a sweep has a checkpoint";
    std::string text;
    for (const auto& [phase, times] : hit) text += fmt::format(" {} {}", phase, times);
    text += "; workers";
    for (const auto& [workers, times] : workers_seen) text += fmt::format(" {}×{}", times, workers);
    note(fmt::format("seed {}: killed in{}; {} runs of {}, {} from a checkpoint, {}", test_seed(), text, run,
                     in_process ? "threads" : "processes", resumed,
                     HasFailure() ? "not the same" : "every bit the same"));
  }

  // Each phase `each` times, in random order; unless is_long only `few`, of which the last to be taken is a sweep, so
  // that there is a checkpoint to go on from.
  static std::vector<std::string> phases(int each, std::size_t few, std::mt19937_64& random) {
    std::vector<std::string> all;
    for (int i = 0; i < (is_long() ? each : 1); ++i) all.insert(all.end(), std::begin(kPhases), std::end(kPhases));
    std::shuffle(all.begin(), all.end(), random);
    if (is_long()) return all;
    all.resize(few);
    all.front() = "sweep";
    return all;
  }

  Workshop shop_;
  ExactEnd one_;
};

TEST_F(ExactOverRanks, undisturbed_workers_do_what_is_planned_and_end_alike) {
  const ExactEnd whole = one_worker();
  EXPECT_EQ(shop_.unplanned_work("one", kSteps), "");
  for (const char* axis : {"data", "fsdp"}) {
    const std::string run = fmt::format("over-{}", axis);
    const Captured done = ran(run, {"--set", mesh(axis, 3)});
    ASSERT_EQ(done.exit.code, 0) << done.err;
    EXPECT_EQ(shop_.unplanned_work(run, kSteps), "") << axis;
    EXPECT_EQ(end_of(run), whole) << axis;
  }
}

TEST_F(ExactOverRanks, threads_killed_in_every_phase) {
  std::mt19937_64 random(test_seed());
  killed_in(phases(6, 3, random), true, random);
}

TEST_F(ExactOverRanks, processes_killed_in_every_phase) {
  std::mt19937_64 random(test_seed() + 1);
  killed_in(phases(3, 2, random), false, random);
}

// Each generation is killed at its fifteenth update, after two saves; the run recovers by itself.
TEST_F(ExactOverRanks, an_elastic_run_ends_as_one_worker_would) {
  const ExactEnd whole = one_worker();
  const Captured done = ran("elastic", {"--ranks", "1:4", "--inject", "kill=update@15"});
  EXPECT_EQ(done.exit.code, 0) << done.out << done.err;
  EXPECT_NE(done.err.find("generation 2"), done.err.npos) << done.err;
  const std::vector<Turn> turns = shop_.turns("elastic");
  ASSERT_GE(turns.size(), 2U);
  for (std::size_t t = 1; t < turns.size(); ++t) {
    EXPECT_GE(turns[t].from_step, 4) << "generation " << t + 1;
    EXPECT_EQ(turns[t].first, turns[t].from_step + 1) << "generation " << t + 1;
  }
  EXPECT_EQ(end_of("elastic"), whole);
}

// A run that begins from another run's checkpoint (resume.from) continues exactly like that run: alone, on threads and
// processes, and elastic; killed before its own first checkpoint, it begins there again.
TEST_F(ExactOverRanks, a_run_from_anothers_checkpoint_ends_as_that_run) {
  const ExactEnd whole = one_worker();
  ASSERT_EQ(ran("source", {"--set", "checkpoint.keep=10"}).exit.code, 0);
  const auto begun_at = [&](std::int64_t step) { return fmt::format("resume.from=source@{}", step); };
  const auto expect_same = [&](const std::string& run, std::int64_t step, const std::vector<std::string>& more) {
    std::vector<std::string> words{"--set", begun_at(step)};  // a run that goes on may repeat its origin
    words.insert(words.end(), more.begin(), more.end());
    const Captured done = ran(run, words);
    ASSERT_EQ(done.exit.code, 0) << run << ": " << done.out << done.err;
    const ExactEnd end = end_of(run);
    EXPECT_EQ(end.state, whole.state) << run;
    const std::vector<std::string> rest(whole.losses.begin() + step, whole.losses.end());
    EXPECT_EQ(end.losses, rest) << run;
  };
  expect_same("alone", 4, {});
  expect_same("alone-late", 20, {});
  expect_same("threads", 8, {"--set", mesh("fsdp", 3), "--in-process"});
  expect_same("processes", 12, {"--set", mesh("data", 2)});
  // A generation that begins at 8 is killed in step 21; the next has fewer updates left.
  expect_same("elastic", 8, {"--ranks", "1:3", "--inject", "kill=update@13"});
  const Captured killed = ran(
      "again", {"--set", begun_at(8), "--set", mesh("data", 2), "--max-restarts", "0", "--inject", "kill=update@3"});
  EXPECT_NE(killed.exit.code, 0) << "in step 11, before the save of step 12: " << killed.out;
  EXPECT_EQ(shop_.newest_saved("again"), 0);
  expect_same("again", 8, {"--set", mesh("fsdp", 3)});
  EXPECT_EQ(shop_.not_resumed("again", 8), "");
}

}  // namespace
}  // namespace systole::laws
