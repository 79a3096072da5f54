// `systole import`: what it writes is taken by check, and by render.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kScript = R"(#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --time=02:00:00
#SBATCH --mail-type=END
srun torchrun --nnodes=2 --nproc-per-node=4 train.py --epochs 3
)";

TEST(ImportCommand, writes_what_check_and_render_take) {
  const SystoleRunner systole;
  systole.write("their.sh", kScript);
  const Captured made = systole.run({"import", "their.sh", "--out", "job.yaml"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(made.out, "written: job.yaml\n");
  EXPECT_EQ(made.err,
            "warning: not carried over: --mail-type=END: nobody sends mail: systole runs, systole logs -f\n"
            "next: systole check job.yaml\n");
  EXPECT_EQ(systole.run({"check", "job.yaml"}).exit.code, 0);
  const Captured rendered = systole.run({"render", "job.yaml", "--on", "slurm", "--out", "out"});
  ASSERT_EQ(rendered.exit.code, 0) << rendered.err;
  // And back again.
  const Captured again = systole.run({"import", "out/job.sbatch"});
  EXPECT_EQ(again.exit.code, 0) << again.err;
  EXPECT_NE(again.out.find("nodes: 2 # --nodes=2\n"), std::string::npos) << again.out;
  const Captured refused = systole.run({"import", "their.sh", "--out", "job.yaml"});
  EXPECT_EQ(refused.exit.code, 1);
  EXPECT_EQ(refused.err, "error: job.yaml is there already\n  hint: --out ANOTHER\n");
}

TEST(ImportCommand, reads_what_is_pasted) {
  const SystoleRunner systole;
  const Captured made = systole.run({"import", "-", "--json"}, "torchrun --standalone --nproc-per-node=2 a.py\n");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const Node node = parse_json(made.out, "stdout").value();
  EXPECT_NE(node.find("workload")->text().find("ranks_per_node: 2"), std::string::npos) << made.out;
  EXPECT_EQ(node.find("left_out")->items().size(), 0u) << made.out;
  EXPECT_EQ(node.find("notes")->items().size(), 1u) << made.out;
  const Captured refused = systole.run({"import", "-"}, "echo $(touch hacked) `touch hacked`\n");
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "hacked")) << "nothing is run";
}

TEST(ImportCommand, writes_machines_that_render_gives_back) {
  const SystoleRunner systole;
  const Captured made = systole.run({"import", "-", "--out", "vm.yaml"},
                                    "gcloud compute instances create vm --zone=us-central1-a "
                                    "--machine-type=a2-highgpu-4g --provisioning-model=SPOT\n");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(made.err,
            "warning: missing: a program: command: [python3, train.py] in the place of workload: machines, or model, "
            "data and train\nnext: systole check vm.yaml\nthen: systole render vm.yaml --on gcloud\n");
  EXPECT_EQ(systole.run({"check", "vm.yaml"}).exit.code, 0);
  const Captured rendered = systole.run({"render", "vm.yaml", "--on", "gcloud", "--dry-run"});
  EXPECT_EQ(rendered.exit.code, 0) << rendered.err;
  EXPECT_NE(rendered.out.find("gcloud compute instances create vm \\\n  --zone=us-central1-a \\\n  "
                              "--machine-type=a2-highgpu-4g \\\n  --provisioning-model=SPOT\n"),
            std::string::npos)
      << rendered.out;
  for (const char* command : {"run", "plan"}) {
    const Captured refused = systole.run({command, "vm.yaml"});
    EXPECT_EQ(refused.exit.code, 2) << command;
    EXPECT_NE(refused.err.find("machines alone, of which nothing runs"), std::string::npos) << refused.err;
  }
}

// A script's lines that are carried over are not called lost.
TEST(ImportCommand, tells_what_is_carried_over_apart) {
  const SystoleRunner systole;
  const Captured made = systole.run({"import", "-"}, "module load cuda\nsrun torchrun train.py \"$X\"\n");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(made.err.find("not carried over"), std::string::npos) << made.err;
  EXPECT_NE(made.err.find("carried over: module load cuda: each rank runs it first, in command"), std::string::npos)
      << made.err;
}

}  // namespace
}  // namespace systole::cli
