// `run --device xla-cpu` compared with the cpu backend: the same job, its steps lowered to StableHLO and run by XLA on
// this machine's cores.

#include <gtest/gtest.h>

#include <cmath>

#include "ground/base/document.h"
#include "laws/xla_runs.h"

namespace systole::laws {
namespace {

TEST_F(XlaRuns, ten_steps_follow_the_cpu) {
  struct Tried {
    const char *precision, *microbatches;
    double apart;
  };
  for (const auto& [precision, microbatches, apart] : {Tried{"f32", "2", 1e-5}, Tried{"bf16", "1", 2e-2}}) {
    const std::string cpu = fmt::format("cpu-{}", precision), xla = fmt::format("xla-{}", precision);
    const std::vector<std::string> cut{"--set", fmt::format("train.microbatches={}", microbatches)};
    const Captured first = run("cpu", cpu, precision, 10, cut), second = run("xla-cpu", xla, precision, 10, cut);
    ASSERT_EQ(first.exit.code, 0) << first.err;
    ASSERT_EQ(second.exit.code, 0) << second.err;
    const std::vector<double> expected = losses_of(shop_.events(cpu)), found = losses_of(shop_.events(xla));
    ASSERT_EQ(expected.size(), 10u);
    ASSERT_EQ(found.size(), 10u);
    double most = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_NEAR(found[i], expected[i], apart) << precision << " step " << i + 1;
      most = std::max(most, std::abs(found[i] - expected[i]));
    }
    note(fmt::format("{}: losses at most {:.2e} apart", precision, most));
    EXPECT_LT(found.back(), found.front());
    EXPECT_NE(second.err.find("step: "), std::string::npos) << second.err;  // what was compiled, and how
    EXPECT_EQ(second.err.find("forward: "), std::string::npos) << second.err;
  }
}

// Checkpoints are portable: what one device saved, the other continues to the same end.
TEST_F(XlaRuns, go_on_from_each_others_checkpoints) {
  ASSERT_EQ(run("xla-cpu", "whole", "f32", 8).exit.code, 0);
  const Captured half = run("xla-cpu", "half", "f32", 4);
  ASSERT_EQ(half.exit.code, 0) << half.err;
  const Captured rest = systole({"resume", "half", "--backend", "xla-cpu", "--set", "train.steps=8"});
  ASSERT_EQ(rest.exit.code, 0) << rest.err;
  EXPECT_NE(rest.err.find("loaded in"), std::string::npos) << rest.err;  // cached by the run before
  const std::vector<double> whole = losses_of(shop_.events("whole")), halves = losses_of(shop_.events("half"));
  ASSERT_EQ(whole.size(), 8u);
  ASSERT_EQ(halves.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(halves[i], whole[i]) << i;
  const Captured on_cpu = systole({"resume", "half", "--backend", "cpu", "--set", "train.steps=10"});
  ASSERT_EQ(on_cpu.exit.code, 0) << on_cpu.err;
  EXPECT_EQ(losses_of(shop_.events("half")).size(), 10u);
}

// Two microbatches of the batch are a loop in the one module.
TEST_F(XlaRuns, microbatches_change_nothing) {
  std::vector<std::string> two{"--set", "train.microbatches=2"};
  const Captured once = run("xla-cpu", "one", "f32", 6), twice = run("xla-cpu", "two", "f32", 6, two);
  ASSERT_EQ(once.exit.code, 0) << once.err;
  ASSERT_EQ(twice.exit.code, 0) << twice.err;
  EXPECT_NE(twice.err.find("step: "), std::string::npos) << twice.err;
  expect_near(losses_of(shop_.events("two")), losses_of(shop_.events("one")), 6, 1e-5);
  // A step with a NaN leaves the state unchanged; the next begins from there.
  two.insert(two.end(), {"--inject", "nan=3"});
  const Captured bad = run("xla-cpu", "bad", "f32", 4, two);
  std::int64_t skipped = 0;
  for (const Event& event : shop_.events("bad")) {
    if (const auto* step = std::get_if<StepEnded>(&event.body)) skipped += step->skipped ? 1 : 0;
  }
  EXPECT_EQ(skipped, 2) << "the steps that saw it: " << bad.err;
  // It ends as diverged, and keeps its last state for inspection.
  EXPECT_EQ(bad.exit.code, 1) << bad.err;
  EXPECT_NE(bad.out.find("diverged at step 4: the held-out loss is not a number"), std::string::npos) << bad.out;
  EXPECT_NE(bad.err.find("step 4: the held-out loss is no number"), std::string::npos) << bad.err;
  EXPECT_EQ(bad.out.find("bits per byte"), std::string::npos) << bad.out;
  EXPECT_EQ(last_of<Stopped>(shop_.events("bad")).reason, "diverged");
  const Captured before = run("xla-cpu", "before", "f32", 2, {"--set", "train.microbatches=2"});
  ASSERT_EQ(before.exit.code, 0) << before.err;
  const Captured differ = systole({"ckpt", "diff", "before", "bad", "--json"});
  EXPECT_EQ(differ.exit.code, 1) << differ.err;
  const Node differences = *parse_json(differ.out, "diff").value().find("differences");
  ASSERT_EQ(differences.items().size(), 1U) << "the tensor that it was put into: " << differ.out;
  EXPECT_EQ(differences.items()[0].find("differing")->text(), "1") << differ.out;
}

// Devices of one process: the losses equal those of the cpu backend's ranks, and a checkpoint of one mesh goes on on
// another, on one device and on the cpu.
TEST_F(XlaRuns, a_mesh_is_devices_of_one_process) {
  const std::vector<std::string> mesh{"--set", "mesh={data: 2, fsdp: 2}"};
  const Captured cpu = run("cpu", "ranks", "f32", 8, mesh), xla = run("xla-cpu", "mesh", "f32", 4, mesh);
  ASSERT_EQ(cpu.exit.code, 0) << cpu.err;
  ASSERT_EQ(xla.exit.code, 0) << xla.err;
  const std::vector<double> expected = losses_of(shop_.events("ranks"));
  expect_near(losses_of(shop_.events("mesh")), {expected.begin(), expected.begin() + 4}, 4, 1e-5);
  const auto goes_on = [&](const std::string& device, const std::string& on, int steps) {
    const Captured rest = systole(
        {"resume", "mesh", "--backend", device, "--set", fmt::format("train.steps={}", steps), "--set", "mesh=" + on});
    ASSERT_EQ(rest.exit.code, 0) << device << " " << on << rest.err;
    expect_near(losses_of(shop_.events("mesh")), {expected.begin(), expected.begin() + steps},
                static_cast<std::size_t>(steps), 1e-5);
  };
  goes_on("xla-cpu", "{}", 6);
  goes_on("cpu", "{}", 7);
  if (is_long()) goes_on("xla-cpu", "{fsdp: 2}", 8);
}

// At temperature 0 it generates the same as the cpu backend; the cache stays on the device.
TEST_F(XlaRuns, generate_as_the_cpu_does) {
  ASSERT_EQ(run("xla-cpu", "trained", "f32", 8).exit.code, 0);
  const auto text = [&](const char* device) {
    const Captured said = systole({"generate", "trained", "--device", device, "--prompt", "the small", "--tokens", "12",
                                   "--min-tokens", "12", "--temperature", "0"});
    EXPECT_EQ(said.exit.code, 0) << said.err;
    return said.out;
  };
  const std::string expected = text("cpu");
  EXPECT_GT(expected.size(), 12u);
  EXPECT_EQ(text("xla-cpu"), expected);
}

// Each function is compiled once, before the first step, and a run reports their number and time.
TEST_F(XlaRuns, compiles_before_the_first_step_alone) {
  const Captured ran = run("xla-cpu", "counted", "f32", 6, {"--set", "train.evaluate.every=2"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  std::vector<Note> told;
  std::size_t evaluations = 0;
  for (const Event& event : shop_.events("counted")) {
    const auto* note = std::get_if<Note>(&event.body);
    if (note != nullptr && note->what == "compile") told.push_back(*note);
    evaluations += std::holds_alternative<Evaluated>(event.body) ? 1 : 0;
  }
  EXPECT_EQ(evaluations, 3u);
  ASSERT_EQ(told.size(), 1u) << ran.err;
  int compiled = -1, loaded = -1;
  ASSERT_EQ(std::sscanf(told[0].text.c_str(), "%d compiled, %d loaded", &compiled, &loaded), 2) << told[0].text;
  EXPECT_EQ(compiled + loaded, 2) << "step and evaluate: " << ran.err;
  EXPECT_GT(told[0].took, Seconds());
  EXPECT_NE(ran.err.find("info: " + told[0].text), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("anew"), std::string::npos) << ran.err;
}

// Imported weights: the first loss equals the cpu backend's.
TEST_F(XlaRuns, begins_from_weights) {
  ASSERT_EQ(run("cpu", "theirs", "f32", 4).exit.code, 0);
  const Captured made = systole({"ckpt", "export", "theirs", "--to", "hf"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  for (const char* device : {"cpu", "xla-cpu"}) {
    const Captured begun = run(device, fmt::format("from-{}", device), "f32", 2, {"--set", "model.weights=hf"});
    ASSERT_EQ(begun.exit.code, 0) << begun.err;
  }
  const std::vector<double> begun = losses_of(shop_.events("from-xla-cpu"));
  expect_near(begun, losses_of(shop_.events("from-cpu")), 2, 1e-5);
  EXPECT_LT(begun[0], losses_of(shop_.events("theirs"))[0] - 0.1) << "the same batch, and weights that have seen it";
}

// A plan needs no run; why reports one. Recomputing changes no number.
TEST_F(XlaRuns, plan_why_and_recompute) {
  ASSERT_EQ(run("xla-cpu", "plain", "f32", 3).exit.code, 0);
  const Captured plan = systole({"plan", "job.yaml", "--device", "xla-cpu", "--set", "train.exact=false", "--set",
                                 "train.microbatches=1", "--set", "train.precision=f32"});
  EXPECT_EQ(plan.exit.code, 0) << plan.err;
  EXPECT_NE(plan.out.find("temporaries"), std::string::npos) << plan.out;
  const Captured why = systole({"why", "plain"});
  EXPECT_EQ(why.exit.code, 0) << why.err;
  EXPECT_NE(why.out.find("compute"), std::string::npos) << why.out;
  EXPECT_NE(why.out.find("\ncompile                   unknown "), std::string::npos) << why.out;
  EXPECT_NE(why.out.find(" compiled, "), std::string::npos) << why.out;
  EXPECT_NE(why.out.find("counted by nobody: XLA ran 3 steps"), std::string::npos) << why.out;
  if (!is_long()) return;
  const Captured again = run("xla-cpu", "again", "f32", 3, {"--set", "train.recompute=block"});
  ASSERT_EQ(again.exit.code, 0) << again.err;
  expect_near(losses_of(shop_.events("again")), losses_of(shop_.events("plain")), 3, 1e-6);
}

// Unsupported features are refused by name before anything is compiled or left behind.
TEST_F(XlaRuns, what_is_not_done_is_refused_by_name) {
  struct Refused {
    std::vector<std::string> words;
    const char* named;
  };
  const Refused all[] = {
      {{"--set", "train.exact=true", "--set", "mesh={data: 3}"}, "exact training on devices of unequal numbers"},
      {{"--eager"}, "--eager"},
      {{"--inject", "flip=2"}, "--inject flip"},
      {{"--set", "probe.values=parameters"}, "showing values"},
      {{"--set", "observe.replay_check=2"}, "the check of gradients"},
      {{"--ranks", "1:2"}, "--ranks A:B"},
      {{"--ranks", "2", "--chaos", "hazard.yaml"}, "--chaos"},
      {{"--ranks", "2", "--inject", "nan=2"}, "--inject on several devices"},
      {{"--ranks", "4", "--local-ranks", "2", "--rendezvous", "127.0.0.1:7001"}, "ranks on several nodes"},
  };
  for (const Refused& one : all) {
    const Captured refused = run("xla-cpu", "refused", "f32", 2, one.words);
    EXPECT_EQ(refused.exit.code, 3) << one.named << refused.err;
    EXPECT_NE(refused.err.find(one.named), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("hint: "), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(shop_.path("refused"))) << one.named;
  }
  const Captured too_many = run("gpu", "refused", "f32", 2, {"--ranks", "64"});
  EXPECT_EQ(too_many.exit.code, 3) << too_many.err;
  EXPECT_NE(too_many.err.find("hint: "), std::string::npos) << too_many.err;
}

TEST_F(XlaRuns, a_plugin_that_is_not_there_is_one_sentence_with_its_command) {
  Command command = shop_.command({"run", "job.yaml", "--device", "gpu", "--set", "train.exact=false"});
  command.env.push_back({"SYSTOLE_XLA_PLUGINS", shop_.path("nowhere")});
  const Captured refused = run_captured(command).value();
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("tools/xla-plugins gpu"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace systole::laws
