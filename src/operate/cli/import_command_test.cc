// `systole import`: check and render accept what it writes.

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"

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
  // The round trip.
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

// The words of the gcloud command in a text, unordered.
std::multiset<std::string> gcloud_words(const std::string& text) {
  std::string line = text.substr(text.find("\ngcloud ") + 1);
  for (std::size_t at = line.find(" \\\n"); at != line.npos; at = line.find(" \\\n", at)) line.replace(at, 3, "");
  std::istringstream words(line.substr(0, line.find('\n')));
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

TEST(ImportCommand, machines_go_both_ways) {
  const SystoleRunner systole;
  int number = 0;
  for (const std::string line :
       {"gcloud compute tpus tpu-vm create my-tpu --zone=us-central2-b --accelerator-type=v4-8 "
        "--version=tpu-vm-tf-2.14.0 --network=lab --spot",
        "gcloud compute instances create gpu-vm --project=my-lab-7 --zone=us-central1-a --machine-type=n1-standard-8 "
        "--accelerator=type=nvidia-tesla-t4,count=2 --provisioning-model=SPOT --image-family=pytorch-latest-gpu "
        "--image-project=deeplearning-platform-release --boot-disk-size=200GB --network=lab",
        "gcloud container node-pools create gpu-pool --project=my-lab-7 --cluster=ml-cluster --zone=us-central1-a "
        "--machine-type=a2-highgpu-4g --accelerator=type=nvidia-tesla-a100,count=4 --num-nodes=2 "
        "--enable-autoscaling --min-nodes=0 --max-nodes=4 --disk-size=200 --image-type=COS_CONTAINERD --preemptible",
        "gcloud container clusters create ml-cluster --project=my-lab-7 --zone=us-central1-a "
        "--machine-type=n1-standard-4 --num-nodes=1 --network=lab"}) {
    const std::string file = "machines" + std::to_string(++number) + ".yaml";
    const Captured made = systole.run({"import", "-", "--out", file}, line + "\n");
    ASSERT_EQ(made.exit.code, 0) << made.err;
    EXPECT_EQ(made.err.find("not carried over"), std::string::npos) << made.err;
    EXPECT_EQ(systole.run({"check", file}).exit.code, 0) << line;
    const Captured rendered = systole.run({"render", file, "--on", "gcloud", "--dry-run"});
    ASSERT_EQ(rendered.exit.code, 0) << rendered.err;
    EXPECT_EQ(gcloud_words(rendered.out), gcloud_words("\n" + line + "\n")) << rendered.out;
    // The rendered script imports as the same workload.
    const std::string script = rendered.out.substr(rendered.out.find("#!"));
    const Captured again = systole.run({"import", "-"}, script);
    ASSERT_EQ(again.exit.code, 0) << again.err;
    const Captured first = systole.run({"import", "-"}, line + "\n");
    EXPECT_EQ(parse_yaml(again.out, "again").value(), parse_yaml(first.out, "first").value()) << again.out << first.out;
  }
}

// Lines of a script that are carried over are not reported as lost.
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
