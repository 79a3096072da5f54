// What plan and run report about this machine before anything starts: types without a rate, calibrations for other
// numbers of threads, memory shared by ranks, idle mesh axes; and that accepted workloads then run.

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/document.h"
#include "ground/process/machine.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

constexpr const char* kText = R"(systole: 1
name: tiny
model: { family: llama, layers: 2, width: 16, heads: 2, kv_heads: 1, mlp: 32, context: 16 }
data:
  train: { files: text.txt, document: line }
  held_out: { fraction: 10% }
  tokenizer: { vocabulary: 300 }
  folder: data
train:
  batch: 2
  steps: 2
  optimizer: { rate: 1e-3 }
)";

class PlanHere : public testing::Test {
 protected:
  PlanHere() {
    std::string text;
    for (int i = 0; i < 300; ++i)
      text += fmt::format("word {} of a list that goes on for a while, in its {}th line\n", i * 7 % 50, i);
    systole_.write("text.txt", text);
    systole_.write("text.yaml", kText);
    systole_.write("job.yaml", kWorkload);
  }
  Captured shell(const std::string& words) const { return systole_.shell("$SYSTOLE " + words); }
  static bool says(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }
  // The first edit in a hint, without its explanation.
  static std::string hint_of(const std::string& err) {
    const std::size_t at = err.rfind("hint: ");
    return at == err.npos ? "" : err.substr(at + 6, err.find('\n', at) - at - 6);
  }
  SystoleRunner systole_;
};

TEST_F(PlanHere, every_type_of_the_reference_runs_with_or_without_a_rate) {
  for (const std::string& job : {std::string("text.yaml"), std::string("job.yaml")}) {
    for (const auto& [precision, has_rate] :
         std::vector<std::pair<std::string, bool>>{{"f64", false},
                                                   {"f16", false},
                                                   {"f8e4m3", false},
                                                   {"f8e5m2", false},
                                                   {"{parameter: f64}", true},
                                                   {"{reduce: f64}", true},
                                                   {"{reduce: f16}", true},
                                                   {"{accumulate: f64}", true},
                                                   {"{parameter: f64, compute: bf16}", true},
                                                   {"{compute: f16, parameter: f64, reduce: f8e5m2}", false}}) {
      SCOPED_TRACE(job + " " + precision);
      const std::string words =
          job + " --backend reference --set train.steps=2 --set 'train.precision=" + precision + "' ";
      const Captured plan = shell("plan " + words);
      EXPECT_EQ(plan.exit.code, 0) << plan.err;
      EXPECT_EQ(says(plan.out, "time of a step: unknown: "), !has_rate) << plan.out;
      const Captured run = shell("run " + words + "--folder run");
      EXPECT_EQ(run.exit.code, 0) << run.out << run.err;
      EXPECT_EQ(shell("why run").exit.code, 0);
      std::filesystem::remove_all(systole_.folder() / "run");
    }
  }
}

TEST_F(PlanHere, f64_holds_on_meshes_exact_and_in_pipelines) {
  for (const char* more : {"--set mesh.data=2 --in-process", "--set mesh.fsdp=2 --in-process",
                           "--set mesh.pipe=2 --set train.microbatches=2 --in-process",
                           "--set train.exact=true --set train.logical_shards=2 --set mesh.data=2 --in-process"}) {
    for (const char* precision : {"{parameter: f64}", "{reduce: f64}", "f64"}) {
      SCOPED_TRACE(std::string(more) + " " + precision);
      const Captured run = shell(
          fmt::format("run text.yaml --backend reference --folder run --set 'train.precision={}' {}", precision, more));
      EXPECT_EQ(run.exit.code, 0) << run.out << run.err;
      std::filesystem::remove_all(systole_.folder() / "run");
    }
  }
}

TEST_F(PlanHere, a_prediction_that_could_not_be_made_is_told_as_unknown) {
  const Captured run = shell("run text.yaml --backend reference --set train.precision=f16 --folder run");
  ASSERT_EQ(run.exit.code, 0) << run.err;
  const Captured why = shell("why run");
  EXPECT_TRUE(says(why.out, "no time was predicted: ") && says(why.out, "no matmul rate for f16")) << why.out;
  EXPECT_TRUE(says(why.out, "unknown")) << why.out;
  const Node plan =
      parse_json(shell("plan text.yaml --backend reference --set train.precision=f16 --json").out, "p").value();
  EXPECT_TRUE(says(plan.find("time")->find("unknown")->text(), "f16"));
}

TEST_F(PlanHere, groups_of_values_are_saved) {
  const Captured run =
      shell("run text.yaml --set probe.every=1 --set 'probe.save=[gradients, parameters]' --folder run");
  ASSERT_EQ(run.exit.code, 0) << run.err;
  for (const char* name : {"gradient.blocks.1.attn.q", "blocks.0.attn.q", "embed.tokens", "gradient.embed.tokens"})
    EXPECT_TRUE(std::filesystem::exists(systole_.folder() / "run/probes/2" / (std::string(name) + ".npy"))) << name;
  const Captured shown = shell("run text.yaml --set probe.every=1 --set probe.values=parameters --folder shown");
  EXPECT_TRUE(says(shown.out, "step 1  embed.tokens ") && !says(shown.out, "gradient/")) << shown.out;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "shown/probes/2/embed.tokens.npy"));
}

// Hints about memory work when typed: for all ranks of a node, in terms of the limit's source.
TEST_F(PlanHere, hints_about_memory_fit_when_they_are_typed) {
  for (const char* verb : {"plan", "run --dry-run"}) {
    for (const std::string ranks : {"", " --set mesh.data=8 "}) {
      const std::string words = fmt::format("{} job.yaml --set train.batch=8 --backend reference{}", verb, ranks);
      const Captured option = shell(words + " --memory 10MB");
      EXPECT_EQ(option.exit.code, 1) << option.err;
      const std::string edit = hint_of(option.err);
      ASSERT_TRUE(edit.starts_with("--memory ")) << option.err;
      const std::string value = edit.substr(9, edit.find(' ', 9) - 9);
      const Captured fits = shell(words + " --memory " + value);
      EXPECT_EQ(fits.exit.code, 0) << value << "\n" << fits.err;
      EXPECT_EQ(says(option.err, "8 ranks share equally"), !ranks.empty()) << option.err;
      const Captured key = shell(words + " --set resources.memory=10MB");
      const std::string of_key = hint_of(key.err);
      ASSERT_TRUE(of_key.starts_with("resources.memory: ")) << key.err;
      EXPECT_EQ(shell(words + " --set resources.memory=" + of_key.substr(18, of_key.find(' ', 18) - 18)).exit.code, 0);
    }
  }
}

TEST_F(PlanHere, an_axis_that_cuts_nothing_is_told_of) {
  for (const char* verb : {"plan", "run --dry-run"}) {
    const Captured seen = shell(fmt::format("{} job.yaml --backend reference --set mesh.model=2", verb));
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    EXPECT_TRUE(says(seen.err, "warning: mesh: nothing of this model is cut along the axis 'model' of 2")) << seen.err;
    EXPECT_TRUE(says(seen.err, "--set 'mesh={data: 2}'")) << seen.err;
    const Captured both =
        shell(fmt::format("{} job.yaml --backend reference --set 'mesh={{data: 2, model: 2}}'", verb));
    EXPECT_TRUE(says(both.err, "--set 'mesh={data: 4}'")) << both.err;
  }
  const Captured mended = shell("plan job.yaml --backend reference --set 'mesh={data: 2}'");
  EXPECT_FALSE(says(mended.err, "is cut along")) << mended.err;
  for (const char* axis : {"data", "fsdp", "model", "pipe"})
    EXPECT_FALSE(
        says(shell(fmt::format("plan text.yaml --backend reference --set mesh.{}=2", axis)).err, "is cut along"))
        << axis;
}

TEST_F(PlanHere, ranks_beside_a_mesh_name_the_edit) {
  const Captured run =
      shell("run job.yaml --in-process --ranks 2 --backend reference --folder run --set checkpoint.every=2");
  ASSERT_EQ(run.exit.code, 0) << run.err;
  const Captured refused = shell("resume run --in-process --ranks 4 --backend reference --set train.steps=6");
  EXPECT_EQ(refused.exit.code, 2) << refused.err;
  EXPECT_TRUE(says(refused.err, "hint: --set mesh.data=4 in place of --ranks")) << refused.err;
  const Captured resumed = shell("resume run --in-process --set mesh.data=4 --backend reference --set train.steps=6");
  EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
  const Captured several = shell("run text.yaml --dry-run --ranks 8 --set 'mesh={fsdp: 2, model: 2}'");
  EXPECT_TRUE(says(several.err, "hint: --set mesh.fsdp=4 in place of --ranks")) << several.err;
}

TEST_F(PlanHere, a_plan_that_is_written_is_what_is_run_next) {
  const Captured plan = shell("plan job.yaml --backend reference --out 'my plan.json'");
  ASSERT_EQ(plan.exit.code, 0) << plan.err;
  EXPECT_TRUE(says(plan.err, "written: my plan.json\n")) << plan.err;
  const std::size_t next = plan.err.find("next: systole ");
  ASSERT_NE(next, std::string::npos) << plan.err;
  const std::string words = plan.err.substr(next + 14, plan.err.find('\n', next) - next - 14);
  EXPECT_TRUE(says(words, "--plan 'my plan.json'")) << words;
  const Captured run = shell(words);
  EXPECT_EQ(run.exit.code, 0) << run.err;
}

#ifdef SYSTOLE_HAS_CPU
// A calibration is for a number of threads; each has its own entry.
TEST_F(PlanHere, calibrations_stand_side_by_side_by_threads) {
  const auto planned = [&](const std::string& more) { return shell("plan job.yaml " + more); };
  if (allowed_cores() < 2) GTEST_SKIP() << "one core: there are no two numbers of threads";
  const Captured made = shell("calibrate --quick --no-disk --threads 1");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_TRUE(says(made.err, "this-machine-1.yaml; plans for 1 thread read it")) << made.err;
  const Captured two = planned("--set resources.threads=2");
  EXPECT_TRUE(says(two.err, "there is no calibration for 2 threads; that of 20")) << two.err;
  EXPECT_TRUE(
      says(two.err, allowed_cores() == 2 ? "hint: systole calibrate\n" : "hint: systole calibrate --threads 2\n"))
      << two.err;
  EXPECT_EQ(planned("--set resources.threads=2 --quiet").err, "");
  systole_.shell(
      "cd .config/systole/catalog && sed 's/this-machine-1/this-machine-2/; s/ 1 thread)/ 2 threads)/' "
      "this-machine-1.yaml > this-machine-2.yaml");
  for (const char* threads : {"1", "2"}) {
    const Captured seen = planned(std::string("--set resources.threads=") + threads);
    EXPECT_TRUE(says(seen.out, std::string("times are calibrated: this-machine-") + threads)) << seen.out << seen.err;
  }
  // One of before servers' products were measured.
  systole_.write("chat.yaml",
                 "systole: 1\nname: chat\nworkload: serve\nmodel: { family: llama, layers: 2, width: 32, heads: 2, "
                 "kv_heads: 1, mlp: 64, context: 64, vocabulary: 288 }\nserve: { slots: 2, objective: { ttft: 10s, "
                 "tpot: 1s }, traffic: { rate: 0.5, requests: 300, prompt: 20, answer: 5 } }\n");
  const auto served = [&](const std::string& more) {
    return shell("plan chat.yaml --set resources.threads=1 " + more);
  };
  const std::string old =
      "measured no products of servers: steps are timed by the rates of training\n  hint: systole "
      "calibrate --threads 1\n";
  const Captured whole = served("");
  EXPECT_TRUE(says(whole.out, "times of steps are calibrated on this machine") && !says(whole.err, old)) << whole.err;
  systole_.shell("sed -i '/serving[.]product/d' .config/systole/catalog/*.yaml");
  const Captured lacking = served("");
  EXPECT_TRUE(says(lacking.err, old) && says(lacking.out, "how far off the times of steps are is unknown"))
      << lacking.out << lacking.err;
  const std::string searched = served("--search slots").err;
  EXPECT_TRUE(says(searched, old) && searched.find(old) == searched.rfind(old)) << "once: " << searched;
  // Calibration does not cover the reference backend.
  const Captured reference = planned("--backend reference");
  EXPECT_TRUE(says(reference.out, "UNCALIBRATED") && !says(reference.err, "calibration")) << reference.err;
}
#endif

}  // namespace
}  // namespace systole::cli
