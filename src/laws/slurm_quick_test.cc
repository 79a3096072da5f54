// Our part of the time from submit to running ranks, measured on a real Slurm.
#include "laws/slurm_cluster.h"

namespace systole {
namespace {

using SlurmMeasured = Slurm;

TEST_F(SlurmMeasured, from_submit_to_running_ranks_is_quick) {
  write("hello.yaml",
        "systole: 1\nname: hello\ncommand: [sh, -c, date +%s.%N >runs/hello/at]\nresources: { longest: 1min }\n");
  write("plain.sh", "#!/bin/sh\ndate +%s.%N >plain.at\n");
  const auto seconds = [&](const std::string& line, const std::string& at) {
    const Captured begun = run("date +%s.%N; " + line);
    EXPECT_TRUE(waits([&] { return !text_of(folder_ / at).empty(); })) << begun.out << begun.err;
    return std::stod(text_of(folder_ / at)) - std::stod(begun.out);
  };
  const double slurm = seconds("sbatch plain.sh >/dev/null", "plain.at");
  const double ours = seconds("\"$SYSTOLE\" -q submit hello.yaml --on slurm >/dev/null", "runs/hello/at");
  RecordProperty("slurm_s", std::to_string(slurm));
  RecordProperty("systole_s", std::to_string(ours));
  std::cout << fmt::format("submit to running: Slurm alone {:.2f} s, systole submit {:.2f} s\n", slurm, ours);
  EXPECT_LT(ours - slurm, 3.0);
}

}  // namespace
}  // namespace systole
