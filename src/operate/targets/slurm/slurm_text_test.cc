#include "operate/targets/slurm/slurm_text.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

// Output of Slurm 22.05.8; | is the end of a field.
std::vector<JobStatus> read(std::string text) {
  for (char& c : text)
    if (c == '|') c = '\x1f';
  return read_squeue(text);
}

TEST(SlurmText, reads_what_runs_what_waits_and_what_ended) {
  const auto jobs = read(
      "17|RUNNING|None|0|systole/run=line/00ff|1795487588|1795488788|n[0-3]|\n"
      "18|PENDING|Resources|0|systole/run=other/11ee|1795488788|N/A||\n"
      "19_3|PENDING|BeginTime|2|systole/run=seeds/22dd|1795488788|N/A||\n"
      "20|FAILED|NonZeroExitCode|0|systole/run=bad/33cc|1795487588|1795487600|n0|\n"
      "21|CANCELLED|Resources|0|systole/run=gone/44bb|N/A|1795487600|(null)|\n");
  ASSERT_EQ(jobs.size(), 5u);
  EXPECT_EQ(jobs[0], (JobStatus{"17", "line", "00ff", RunState::running, "", 0, "n[0-3]", 1795487588, 0}));
  EXPECT_EQ(jobs[1].state, RunState::queued);
  EXPECT_EQ(jobs[1].reason, "Resources: its machines are in use");
  EXPECT_EQ(jobs[1].began_at, 0) << "when Slurm thinks that it will begin is no begin";
  EXPECT_EQ(jobs[2].state, RunState::preempted);
  EXPECT_EQ(jobs[2].id, "19_3");
  EXPECT_EQ(jobs[3].state, RunState::failed);
  EXPECT_EQ(jobs[3].reason, "FAILED: NonZeroExitCode");
  EXPECT_EQ(jobs[3].ended_at, 1795487600);
  EXPECT_EQ(jobs[4].state, RunState::stopped);
  EXPECT_EQ(jobs[4].nodes, "");
  EXPECT_EQ(jobs[4].reason, "") << "why it waited is over";
}

TEST(SlurmText, leaves_out_the_jobs_of_others_and_lines_that_are_none) {
  EXPECT_TRUE(read("17|RUNNING|None|0|(null)|1|2|n0|\n17|RUNNING|None|0|my systole/run=x|1|2|n0|\n"
                   "slurm_load_jobs error: Unable to contact slurm controller\n17|RUNNING|None\n\n||||||||\n"
                   "1|2|3|4|5|6|7|8|9|\n")
                  .empty());
}

TEST(SlurmText, a_hostile_comment_breaks_no_line) {
  const auto jobs = read("17|RUNNING|None|0|systole/run=/../../etc\"$(x)|1|2|n0|\n");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].run, "");
  EXPECT_EQ(jobs[0].submission, "../../etc\"$(x)") << "it is only ever compared";
}

TEST(SlurmText, every_state_that_squeue_documents_is_one_of_ours) {
  for (const char* state : {"BOOT_FAIL",     "CANCELLED",    "COMPLETED",     "CONFIGURING", "COMPLETING", "DEADLINE",
                            "FAILED",        "NODE_FAIL",    "OUT_OF_MEMORY", "PENDING",     "PREEMPTED",  "RUNNING",
                            "RESV_DEL_HOLD", "REQUEUE_FED",  "REQUEUE_HOLD",  "REQUEUED",    "RESIZING",   "REVOKED",
                            "SIGNALING",     "SPECIAL_EXIT", "STAGE_OUT",     "STOPPED",     "SUSPENDED",  "TIMEOUT"})
    EXPECT_NE(state_of_slurm(state, 0), RunState::unknown) << state;
  EXPECT_EQ(state_of_slurm("WHATEVER", 0), RunState::unknown);
  EXPECT_EQ(state_of_slurm("PENDING", 1), RunState::preempted);
}

TEST(SlurmText, a_job_is_named_by_its_number) {
  EXPECT_EQ(read_sbatch("17\n").value(), "17");
  EXPECT_EQ(read_sbatch("17;cluster\n").value(), "17");
  for (const char* none : {"", "\n", "Submitted batch job 17", "17x", "-1"})
    EXPECT_FALSE(read_sbatch(none).ok()) << none;
}

TEST(SlurmText, machines_that_are_away_are_told_from_those_in_use) {
  EXPECT_FALSE(has_machines_away("idle 22.05.8\nmixed 22.05.8\nallocated 22.05.8\nplanned 22.05.8\n"));
  EXPECT_FALSE(has_machines_away(""));
  for (const char* away : {"down", "down*", "idle*", "unknown", "drained", "idle~", "allocated#", "powered_down"})
    EXPECT_TRUE(has_machines_away(fmt::format("idle 22.05.8\n{} 22.05.8\n", away))) << away;
  EXPECT_TRUE(has_machines_away("idle 22.05.8\nmixed N/A\n")) << "it has not said yet what it runs";
}

}  // namespace
}  // namespace systole
