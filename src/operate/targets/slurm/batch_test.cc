// Runs job.sbatch with stand-ins of srun, squeue and scontrol, and checks how it reports the end of its agents.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>

#include "ground/process/capture.h"
#include "operate/targets/testing/rendered_examples.h"

namespace systole {
namespace {

// Runs an agent for each of AGENTS, which exits with that code, and exits with SRUN; STOP: a user requested a stop.
constexpr const char* kSrun = R"(#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
for code in $AGENTS; do
  AGENT=$code "$@"
done
[ -z "$STOP" ] || : >"$SYSTOLE_STATE/stop"
exit "$SRUN"
)";

class SlurmBatch : public testing::Test {
 protected:
  SlurmBatch() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-batch-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    const Workload workload = workload_of({"", "slurm", "ddp.yaml", {"resources.nodes=2"}});
    write("job.sbatch", rendered(workload, "slurm", "here").value().files[0].text);
    write("files/start.sh", "exit \"$AGENT\"\n");
    write("state/ledger", "");
    write("bin/srun", kSrun);
    write("bin/squeue", "#!/bin/sh\necho RUNNING\n");
    write("bin/scontrol", "#!/bin/sh\necho \"$*\" >>scontrol\n");
    for (const char* program : {"srun", "squeue", "scontrol"})
      std::filesystem::permissions(folder_ / "bin" / program, std::filesystem::perms(0755));
  }
  ~SlurmBatch() override { std::filesystem::remove_all(folder_); }

  struct Ended {
    int code;
    std::string ledger;  // code of the last line
    bool again;          // it asked Slurm to requeue it
    bool operator==(const Ended&) const = default;
  };
  Ended ended(const std::string& agents, int srun, bool stopped = false) {
    std::filesystem::remove(folder_ / "scontrol");
    std::filesystem::remove(folder_ / "state/stop");
    Command command;
    command.argv = {"bash", "job.sbatch"};
    command.cwd = folder_.string();
    command.env = {{"PATH", (folder_ / "bin").string() + ":" + std::getenv("PATH")},
                   {"SYSTOLE_FILES", (folder_ / "files").string()},
                   {"SYSTOLE_STATE", (folder_ / "state").string()},
                   {"SLURM_JOB_ID", "7"},
                   {"SLURM_JOB_NUM_NODES", "2"},
                   {"SLURM_RESTART_COUNT", std::nullopt},
                   {"SLURM_ARRAY_JOB_ID", std::nullopt},
                   {"SLURM_ARRAY_TASK_ID", std::nullopt},
                   {"AGENTS", agents},
                   {"SRUN", std::to_string(srun)},
                   {"STOP", stopped ? "1" : ""}};
    const Captured said = run_captured(command).value();
    EXPECT_EQ(said.err, "");
    const std::string ledger = read_text_file((folder_ / "state/ledger").string()).value();
    const std::size_t last = ledger.rfind("ended 7 0 ");
    if (last == ledger.npos) return {said.exit.code, "nothing", false};
    const std::string line = ledger.substr(last, ledger.size() - 1 - last);
    return {said.exit.code, line.substr(line.rfind(' ') + 1), std::filesystem::exists(folder_ / "scontrol")};
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_text_file((folder_ / name).string(), text).value();
  }

  std::filesystem::path folder_;
};

// srun kills the other agents once the first one has ended, and reports the killed agents' code.
TEST_F(SlurmBatch, one_that_saved_ended_with_75_whatever_the_others_were_killed_by) {
  for (const int killed : {137, 143}) {
    const std::string agents = fmt::format("75 {}", killed);
    EXPECT_EQ(ended(agents, killed), (Ended{75, "75", true})) << agents;
    EXPECT_EQ(ended(agents, killed, true), (Ended{75, "75", false})) << agents << ", and somebody asked for it";
  }
}

TEST_F(SlurmBatch, what_the_first_agent_failed_with_is_the_jobs_code) {
  EXPECT_EQ(ended("1 143", 143), (Ended{1, "1", false}));
  EXPECT_EQ(ended("3 137", 137), (Ended{3, "3", false}));
  EXPECT_EQ(ended("77 143", 143), (Ended{77, "77", false}));
}

TEST_F(SlurmBatch, any_other_code_is_sruns) {
  EXPECT_EQ(ended("0 0", 0), (Ended{0, "0", false}));
  EXPECT_EQ(ended("", 143), (Ended{143, "143", true})) << "no agent said why";
  EXPECT_EQ(ended("143 75", 143), (Ended{143, "143", true})) << "killed before anything was saved";
  EXPECT_EQ(ended("75 76", 76), (Ended{76, "76", true})) << "the other one says that it did not save";
}

}  // namespace
}  // namespace systole
