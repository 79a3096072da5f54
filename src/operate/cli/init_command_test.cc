// `systole init`: what it writes is taken as it is by check, and by run or render.

#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"
#include "operate/import/pattern.h"

namespace systole::cli {
namespace {

class Init : public testing::TestWithParam<Pattern> {};

TEST_P(Init, is_checked_and_rendered_as_it_is) {
  const SystoleRunner systole;
  const std::string pattern = name_of(GetParam()), target = target_of(GetParam());
  const Captured made = systole.run({"init", "jobs", "--pattern", pattern, "--name", "My job"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(made.out, "written: jobs/my-job.yaml\n");
  EXPECT_TRUE(made.err.starts_with("next: systole check jobs/my-job.yaml\nthen: systole ")) << made.err;
  const Captured checked = systole.run({"check", "jobs/my-job.yaml", "--backend", "reference"});
  EXPECT_EQ(checked.exit.code, 0) << checked.err;
  EXPECT_EQ(checked.err.find("warning"), std::string::npos) << checked.err;
  for (const char* environment : {"dev", "prod"}) {
    std::vector<std::string> words = {"render", "jobs/my-job.yaml", "--env", environment, "--on", target,
                                      "--out",  environment};
    if (target.empty())
      words = {"run",       "jobs/my-job.yaml", "--env", environment,     "--set", "train.steps=2",
               "--backend", "reference",        "--set", "train.batch=2", "--set", "checkpoint.every=2"};
    if (target == "kubernetes" && std::string(environment) == "prod") {
      EXPECT_EQ(systole.run(words).exit.code, 2) << "production is by digest";
      words.insert(words.end(), {"--set", "image=registry.example/x@sha256:" + std::string(64, 'a')});
    }
    const Captured done = systole.run(words);
    EXPECT_EQ(done.exit.code, 0) << done.err;
  }
  const Captured again = systole.run({"init", "jobs", "--pattern", pattern, "--name", "My job"});
  EXPECT_EQ(again.exit.code, 1);
  EXPECT_EQ(again.err, "error: jobs/my-job.yaml is there already\n  hint: --name ANOTHER, or another FOLDER\n");
}

INSTANTIATE_TEST_SUITE_P(Patterns, Init, testing::ValuesIn(patterns().begin(), patterns().end()),
                         [](const auto& each) { return name_of(each.param); });

// One workload, two environments, two targets.
TEST(Environments, render_each_for_its_target) {
  const SystoleRunner systole;
  systole.write("job.yaml", R"(systole: 1
name: job
command: python3 train.py
resources: { nodes: 2, threads: 2, memory: 4GiB }
env: { LOG: info }
environments:
  dev:
    resources: { nodes: 1, longest: 10min }
    slurm: { partition: debug }
    env: { LOG: debug }
  prod:
    image: registry.example/job@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    claims: { /runs: runs }
    folder: /runs
    kubernetes: { namespace: prod }
)");
  const auto rendered = [&](const char* environment, const char* target) {
    const Captured made = systole.run({"render", "job.yaml", "--env", environment, "--on", target, "--dry-run"});
    EXPECT_EQ(made.exit.code, 0) << made.err;
    return made.out;
  };
  const std::string dev = rendered("dev", "slurm"), prod = rendered("prod", "kubernetes");
  for (const char* line :
       {"#SBATCH --partition=debug\n", "#SBATCH --nodes=1\n", "#SBATCH --time=0-00:10:00\n", "LOG: debug"})
    EXPECT_NE(dev.find(line), std::string::npos) << line << "\n" << dev;
  for (const char* line : {"  namespace: prod\n", "  completions: 2\n", "claimName: runs", "LOG: info"})
    EXPECT_NE(prod.find(line), std::string::npos) << line << "\n" << prod;
  EXPECT_EQ(dev.find("registry.example"), std::string::npos);
  EXPECT_EQ(prod.find("debug"), std::string::npos);
  const Captured none = systole.run({"render", "job.yaml", "--env", "prd", "--on", "kubernetes"});
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_NE(none.err.find("did you mean 'prod'?"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace systole::cli
