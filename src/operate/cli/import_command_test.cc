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
  EXPECT_EQ(node.find("left_out")->items().size(), 1u) << made.out;
  const Captured refused = systole.run({"import", "-"}, "echo $(touch hacked) `touch hacked`\n");
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "hacked")) << "nothing is run";
}

}  // namespace
}  // namespace systole::cli
