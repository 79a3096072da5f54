// plan-is-run, for whole processes on the examples: the work in a run's events equals its plan.json, as integers.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "ground/base/testing/places.h"
#include "laws/process_job.h"

namespace systole::laws {
namespace {

void expect_planned(const Workshop& shop, const std::string& job, std::vector<std::string> sets, std::int64_t steps) {
  std::vector<std::string> words = {"run", job, "--folder", "run"};
  sets.push_back(fmt::format("train.steps={}", steps));
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const Captured done = shop.systole(words);
  ASSERT_EQ(done.exit.code, 0) << done.err;
  EXPECT_EQ(shop.unplanned_work("run", steps), "");
}

TEST(PlanIsRun, a_tiny_gpt) {
  for (const char* recompute : {"none", "attention", "block"}) {
    const Workshop shop;
    expect_planned(shop, "job.yaml", {std::string("train.recompute=") + recompute}, 5);
  }
}

TEST(PlanIsRun, a_tiny_llama) {
  const Workshop shop;
  expect_planned(shop, "job.yaml",
                 {"model.family=llama", "model.kv_heads=1", "model.rope_scaling={kind: llama3, factor: 8}"}, 5);
}

TEST(PlanIsRun, variants_of_the_decoder) {
  const Workshop shop;
  expect_planned(shop, "job.yaml",
                 {"model.parallel_blocks=true", "model.kv_heads=1", "model.activation=relu2", "model.window=7"}, 5);
}

TEST(PlanIsRun, the_linear_example) { expect_planned(Workshop(), SYSTOLE_SOURCE_DIR "/examples/linear.yaml", {}, 50); }

// Two steps of it, on another text.
TEST(PlanIsRun, the_quickstart_example) {
  const Workshop shop;
  std::ifstream file(SYSTOLE_SOURCE_DIR "/examples/quickstart.yaml");
  std::string job(std::istreambuf_iterator<char>(file), {});
  const std::size_t time = job.find("  time: 100s");
  ASSERT_NE(time, job.npos);
  job.replace(time, 12, "  steps: 2");
  shop.write("quickstart.yaml", job);
  expect_planned(shop, "quickstart.yaml",
                 {"data.train.files=text.txt", "data.held_out.files=text.txt", "data.tokenizer.vocabulary=300",
                  "model.vocabulary=2048", "data.folder=data"},
                 2);
}

}  // namespace
}  // namespace systole::laws
