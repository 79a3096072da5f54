// What users see of a run: its progress, and messages when it cannot begin, dies, or is unreadable.

#include <gtest/gtest.h>

#include <csignal>

#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

TEST(RunsSeen, a_reader_that_goes_away_does_not_end_a_run) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured got = systole.shell("\"$SYSTOLE\" run job.yaml --backend reference --folder runs/r 2>&1 | true");
  EXPECT_EQ(got.exit.code, 0);
  EXPECT_NE(systole.run({"runs"}).out.find("finished"), std::string::npos) << systole.run({"runs"}).out;
}

TEST(RunsSeen, a_run_folder_that_cannot_be_made) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  systole.write("file", "");
  const Captured got = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "file/run"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_EQ(got.err,
            "error: cannot make the run folder 'file/run': Not a directory\n"
            "  hint: --folder: a folder that may be made and written\n");
}

TEST(RunsSeen, why_a_run_is_damaged) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  systole.write("runs/small-1/plan.json", "no plan");
  for (int twice = 0; twice < 2; ++twice) {  // the second time from the index
    const Captured got = systole.run({"runs"});
    EXPECT_EQ(got.exit.code, 0) << got.err;
    EXPECT_NE(got.out.find("small-1  damaged"), std::string::npos) << got.out;
    EXPECT_NE(got.err.find("runs/small-1/plan.json:1:2: warning: not valid JSON: "), std::string::npos) << got.err;
  }
}

// After SIGKILL the ring of spans has the last moment.
TEST(RunsSeen, why_of_a_killed_run_says_where_it_was) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured killed =
      systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "r", "--inject", "kill=update@3"});
  EXPECT_EQ(killed.exit.signal, SIGKILL);
  const Captured why = systole.run({"why", "r"});
  EXPECT_NE(why.out.find("last seen in update of step 3, "), std::string::npos) << why.out;
  EXPECT_NE(why.out.find(" · killed · "), std::string::npos) << why.out;
}

// Not even the first file may reach its size.
TEST(RunsSeen, a_limit_on_files_is_one_sentence) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured got = systole.shell("ulimit -f 8; exec \"$SYSTOLE\" run job.yaml --backend reference --folder r");
  EXPECT_EQ(got.exit.code, 1) << got.err;
  EXPECT_EQ(got.err,
            "error: cannot reserve space for 'r/spans/000.ring': File too large\n"
            "  hint: files of this process may be no larger: raise the limit (ulimit -f shows it)\n");
}

// The disk is full for events: the run reports it, and the consequence for its state.
TEST(RunsSeen, a_run_whose_events_could_not_be_written) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(kWorkload, "steps: 4", "steps: 2000\n  divergence: { policy: ignore }") +
                                std::string("checkpoint: { every: never }\n"));
  const Captured got = systole.shell("ulimit -f 100; exec \"$SYSTOLE\" run job.yaml --backend reference --folder r");
  EXPECT_EQ(got.exit.code, 1) << got.err;
  EXPECT_NE(got.err.find("r/events/000.jsonl: error: events of the run could not be written: "), std::string::npos)
      << got.err;
  EXPECT_NE(got.err.find("; no checkpoint was written after it\n  hint: make room, then: systole resume r\n"),
            std::string::npos)
      << got.err;
  EXPECT_EQ(got.err.find("next: "), std::string::npos) << got.err;
  const std::string warning = "r/events/000.jsonl: warning: events of this run cannot be written: ";
  const std::size_t told = got.err.find(warning);
  ASSERT_NE(told, std::string::npos) << "it went on in silence\n" << got.err;
  EXPECT_EQ(got.err.find(warning, told + 1), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("; it goes on until its next checkpoint or its end, which need them\n  hint: files of this "
                         "process may be no larger",
                         told),
            std::string::npos)
      << got.err;
}

TEST(RunsSeen, progress_says_nothing_silly) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "observe: { every: 1 }\n");
  const Captured got = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "r"});
  ASSERT_EQ(got.exit.code, 0) << got.err;
  EXPECT_EQ(got.err.find("0.00 ns"), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("under 1 s left"), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("  100%\n"), std::string::npos) << "nothing is left after the last step\n" << got.err;
  EXPECT_LT(got.err.find("every op: reference"), got.err.find("step 1 ")) << got.err;
}

TEST(RunsSeen, what_does_not_fit_is_refused_before_anything_starts) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured got = systole.run({"run", "job.yaml", "--backend", "reference", "--memory", "1MiB", "--folder", "r"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_NE(got.err.find("error: does not fit"), got.err.npos) << got.err;
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "r" / "checkpoints" / "manifests"));
}

// Without a terminal there is no colour and no carriage return.
TEST(RunsSeen, plain_where_there_is_no_terminal) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured got = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "r"});
  ASSERT_EQ(got.exit.code, 0) << got.err;
  EXPECT_EQ((got.out + got.err).find_first_of("\r\x1b"), std::string::npos);
}

}  // namespace
}  // namespace systole::cli
