// fit-is-proved, measured: peak resident memory of a run, as reported by the system, is at most the planned memory, and
// at least 90% of it. The first run builds its data, the others find it; the plan is the same.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "describe/spec/plan.h"
#include "ground/base/testing/places.h"
#include "laws/process_job.h"
#include "operate/observe/run_files.h"

namespace systole::laws {
namespace {

// `rank`: of several; the folder of its events within the run's.
void expect_within(const std::string& what, const Workshop& shop, const std::string& run,
                   const std::string& rank = "") {
  const std::unique_ptr<Store> store = open_posix_store(shop.path(run)).value();
  const RunRecord record = read_run(*store, "").value();
  ASSERT_TRUE(record.plan);
  const PlannedMemory& planned = record.plan->memory;
  const auto measured = last_of<MemoryMeasured>(rank.empty() ? record.all() : read_run(*store, rank).value().all());
  const double share = static_cast<double>(measured.resident.count()) / static_cast<double>(planned.total().count());
  std::string owners;
  for (const auto& [owner, bytes] : planned.by_owner)
    owners += fmt::format(" {} {}", owner, with_commas(bytes.count()));
  note(fmt::format("{}: {} resident, {} planned: {:.1f}% ({})", what, with_commas(measured.resident.count()),
                   with_commas(planned.total().count()), 100 * share, owners));
  EXPECT_LE(share, 1.0) << what << owners;
  EXPECT_GE(share, 0.9) << what << owners;
  EXPECT_EQ(measured.arena_high_water, planned.arena) << what;
}

class FitMeasured : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "measures memory: runs in the release build";
  }
  // The quickstart's model, fewer steps; `sets` are added.
  void expect_fits(const std::string& name, const std::vector<std::string>& sets) {
    std::vector<std::string> words = {"run", "job.yaml", "--folder", name};
    for (const char* set : {"model.layers=3", "model.width=128", "model.heads=4", "model.context=256",
                            "model.vocabulary=2048", "train.batch=16", "train.microbatches=1", "train.steps=12",
                            "checkpoint.every=4", "train.evaluate.every=6", "train.evaluate.batches=2"})
      words.insert(words.end(), {"--set", set});
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    const Captured done = shop_.systole(words);
    ASSERT_EQ(done.exit.code, 0) << done.err;
    expect_within(name, shop_, name);
  }
  const Workshop shop_;
};

TEST_F(FitMeasured, in_bf16) { expect_fits("bf16", {"train.precision=bf16"}); }
TEST_F(FitMeasured, in_f32) { expect_fits("f32", {"train.precision=f32"}); }

// Without text there is little besides the process itself.
TEST_F(FitMeasured, the_linear_example) {
  const Captured done = shop_.systole({"run", SYSTOLE_SOURCE_DIR "/examples/linear.yaml", "--folder", "linear"});
  ASSERT_EQ(done.exit.code, 0) << done.err;
  expect_within("linear", shop_, "linear");
}

// Kernels need memory too: many layers in many microbatches bind thousands.
TEST_F(FitMeasured, deep_in_microbatches) {
  expect_fits("deep",
              {"model.layers=16", "model.context=64", "train.batch=8", "train.microbatches=4", "train.steps=4"});
}

// Initializing and restoring large tensors leaves no memory behind.
TEST_F(FitMeasured, wide_and_resumed) {
  expect_fits("wide", {"model.width=512", "model.context=64", "train.batch=4", "train.steps=4"});
  const Captured resumed = shop_.systole({"resume", "wide", "--set", "train.steps=8"});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  expect_within("resumed", shop_, "wide");
}

// Each process of several stays within its plan, including the rings between them and its staging buffers.
TEST_F(FitMeasured, on_every_rank) {
  for (const std::string axis : {"data", "fsdp"}) {
    const std::string run = "two_" + axis;
    std::vector<std::string> words = {"run",     "job.yaml", "--folder", run,
                                      "--ranks", "2",        "--set",    "mesh={" + axis + ": 2}"};
    for (const char* set :
         {"model.layers=3", "model.width=128", "model.heads=4", "model.context=256", "model.vocabulary=2048",
          "train.batch=16", "train.steps=6", "train.exact=false", "checkpoint.every=3"})
      words.insert(words.end(), {"--set", set});
    const Captured done = shop_.systole(words);
    ASSERT_EQ(done.exit.code, 0) << done.err;
    expect_within(axis + ", rank 0", shop_, run);
    expect_within(axis + ", rank 1", shop_, run, "ranks/1");
  }
}

// The largest example with its own width, heads, context and vocabulary, on two of its twelve layers; in the long form
// on all of them (a step takes a minute on two cores).
TEST_F(FitMeasured, the_gpt2_example_which_does_the_work_that_was_planned) {
  shop_.write("held_out.txt", "the small river sees the old stone under a quiet tree\n");
  std::vector<std::string> words = {"run", "gpt2.yaml", "--folder", "gpt2"};
  std::vector<std::string> sets = {"train.steps=1", "data.train.files=text.txt", "data.held_out.files=held_out.txt",
                                   "data.tokenizer.vocabulary=300", "data.folder=data"};
  if (!is_long()) sets.insert(sets.end(), {"model.layers=2", "train.batch=2", "train.microbatches=2"});
  std::ifstream file(SYSTOLE_SOURCE_DIR "/examples/gpt2-124m.yaml");
  std::string job(std::istreambuf_iterator<char>(file), {});
  const std::string tokens = "  tokens: 300M\n";
  ASSERT_NE(job.find(tokens), job.npos);
  job.erase(job.find(tokens), tokens.size());
  shop_.write("gpt2.yaml", job);
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const Captured done = shop_.systole(words, Seconds(is_long() ? 500.0 : 120.0));
  ASSERT_EQ(done.exit.code, 0) << done.err;
  expect_within("gpt2", shop_, "gpt2");
  EXPECT_EQ(shop_.unplanned_work("gpt2", 1), "");
}

}  // namespace
}  // namespace systole::laws
