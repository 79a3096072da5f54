// `systole init`: check, and run or render, accept what it writes unchanged.

#include <gtest/gtest.h>

#include <fmt/format.h>
#include "operate/cli/testing/run_systole.h"

#include "operate/init/pattern.h"

namespace systole::cli {
namespace {

// Lines from two hundred words.
std::string my_text() {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += fmt::format("word{} goes before word{} and after number {} in a list\n", i % 101, i * 7 % 199, i);
  return text;
}

struct InitCase {
  Pattern pattern;
  bool text;
};

std::vector<InitCase> init_cases() {
  std::vector<InitCase> all;
  for (const Pattern pattern : patterns()) {
    if (pattern != Pattern::local) all.push_back({pattern, false});
    if (pattern == Pattern::local || pattern == Pattern::slurm) all.push_back({pattern, true});
  }
  return all;
}

class Init : public testing::TestWithParam<InitCase> {};

TEST_P(Init, is_checked_and_rendered_as_it_is) {
  const SystoleRunner systole;
  const auto [kind, of_text] = GetParam();
  const std::string pattern = name_of(kind), target = target_of(kind);
  systole.write("my.txt", my_text());
  std::vector<std::string> init = {"init", "jobs", "--pattern", pattern, "--name", "My job"};
  if (of_text) init.insert(init.end(), {"--data", "my.txt"});
  const Captured made = systole.run(init);
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(made.out, "written: jobs/my-job.yaml\n");
  EXPECT_NE(made.err.find("next: systole check jobs/my-job.yaml\nthen: systole "), std::string::npos) << made.err;
  EXPECT_EQ(made.err.find("model: gpt of ") != std::string::npos, of_text) << made.err;
  const Captured checked = systole.run({"check", "jobs/my-job.yaml", "--backend", "reference"});
  EXPECT_EQ(checked.exit.code, 0) << checked.err;
  EXPECT_EQ(checked.err.find("warning"), std::string::npos) << checked.err;
  for (const char* environment : {"dev", "prod"}) {
    std::vector<std::string> words = {"render", "jobs/my-job.yaml", "--env", environment, "--on", target,
                                      "--out",  environment};
    if (target.empty())
      words = {"run",       "jobs/my-job.yaml", "--env", environment,     "--set", "train.steps=2",
               "--backend", "reference",        "--set", "train.batch=2", "--set", "checkpoint.every=2"};
    if (target.empty() && of_text)  // the reference backend is slow
      for (const char* smaller :
           {"model.layers=1", "model.width=16", "model.heads=1", "model.context=16", "train.evaluate.batches=1"})
        words.insert(words.end(), {"--set", smaller});
    if (target == "kubernetes" && std::string(environment) == "prod") {
      EXPECT_EQ(systole.run(words).exit.code, 2) << "production is by digest";
      words.insert(words.end(), {"--set", "image=registry.example/x@sha256:" + std::string(64, 'a')});
    }
    const Captured done = systole.run(words);
    EXPECT_EQ(done.exit.code, 0) << done.err;
  }
  const Captured again = systole.run(init);
  EXPECT_EQ(again.exit.code, 1);
  EXPECT_EQ(again.err, "error: jobs/my-job.yaml is there already\n  hint: --name ANOTHER, or another FOLDER\n");
}

INSTANTIATE_TEST_SUITE_P(Patterns, Init, testing::ValuesIn(init_cases()), [](const auto& each) {
  return std::string(name_of(each.param.pattern)) + (each.param.text ? "_with_a_text" : "");
});

TEST(InitOfText, is_called_as_the_text_and_lies_here) {
  const SystoleRunner systole;
  systole.write("texts/My notes.v2.txt", my_text());
  const Captured made = systole.run({"init", "texts/My notes.v2.txt"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(made.out, "written: my-notes.yaml\n");
  EXPECT_NE(made.err.find("text: "), std::string::npos) << made.err;
  EXPECT_NE(made.err.find("then: systole run my-notes.yaml\n"), std::string::npos) << made.err;
  EXPECT_EQ(systole.run({"check", "my-notes.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured built = systole.run({"data", "build", "my-notes.yaml"});
  EXPECT_EQ(built.exit.code, 0) << "its tokenizer can be trained, and a document is set aside\n" << built.err;
}

TEST(InitOfText, takes_several_files_and_a_folder) {
  const SystoleRunner systole;
  systole.write("a.txt", my_text());
  systole.write("b.txt", my_text());
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"init", "a.txt", "b.txt", "jobs"}, {"init", "again", "--data", "a.txt", "--data", "b.txt"}}) {
    const Captured made = systole.run(words);
    ASSERT_EQ(made.exit.code, 0) << made.err;
    EXPECT_TRUE(made.out.ends_with("/a.yaml\n")) << made.out;
  }
  EXPECT_EQ(systole.run({"check", "jobs/a.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured pattern = systole.run({"init", "*.txt"});
  EXPECT_EQ(pattern.out, "written: first.yaml\n") << pattern.err;
}

TEST(InitOfText, says_what_is_missing) {
  const SystoleRunner systole;
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "init");
    const Captured told = systole.run(words);
    EXPECT_EQ(told.exit.code, 2) << told.err;
    return told.err;
  };
  systole.write("short.txt", "a few words\n");
  EXPECT_NE(refused({}).find("--pattern linear"), std::string::npos);
  EXPECT_NE(refused({"none.txt"}).find("none.txt"), std::string::npos);
  EXPECT_NE(refused({"short.txt"}).find("too little"), std::string::npos);
  EXPECT_NE(refused({"short.txt", "--pattern", "linear"}).find("is a text"), std::string::npos);
  EXPECT_NE(refused({"--simple", "--pattern", "vm"}).find("--pattern"), std::string::npos);
}

// The machine's price is the catalog's, with the date of its list.
TEST(InitSimple, is_one_machine_of_compute_engine) {
  const SystoleRunner systole;
  const Captured made = systole.run({"init", "--simple"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(made.out, "written: first.yaml\n");
  EXPECT_TRUE(made.err.ends_with("then: systole render first.yaml --on gcloud\n")) << made.err;
  const Captured rendered = systole.run({"render", "first.yaml", "--on", "gcloud", "--dry-run"});
  ASSERT_EQ(rendered.exit.code, 0) << rendered.err;
  EXPECT_NE(rendered.out.find("gcloud compute instances create first"), std::string::npos) << rendered.out;
  EXPECT_NE(rendered.out.find("--provisioning-model=STANDARD"), std::string::npos) << rendered.out;
  const Captured spot = systole.run({"render", "first.yaml", "--env", "spot", "--on", "gcloud", "--dry-run"});
  EXPECT_NE(spot.out.find("--provisioning-model=SPOT"), std::string::npos) << spot.out;
  const Captured ran = systole.run({"run", "first.yaml", "--set", "train.steps=2", "--backend", "reference"});
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
}

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
