// `systole plan --on` with a model of milliseconds: its text and document, and every refusal.

#include <gtest/gtest.h>

#include <cmath>

#include "ground/base/document.h"
#include "operate/cli/testing/plan_job.h"

namespace systole::cli {
namespace {

class PlanOn : public PlanJob {};

TEST_F(PlanOn, tells_the_choice_first_and_why_others_lost) {
  const Captured seen = plan("--on a2-highgpu-2g:1,v5e:1");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  std::size_t at = 0;
  for (const char* words :
       {"tiny: 37,024 parameters", "  layout  ", "  step    ", "  total   ", "  cost    ", "price of 20", "  memory  ",
        "where the time goes", "where the memory goes", "it lost because", "other sizes", "the same layout, but",
        "recompute blocks", " layouts of 2 offers: "}) {
    const std::size_t next = seen.out.find(words, at);
    ASSERT_NE(next, std::string::npos) << words << "\n" << seen.out;
    at = next;
  }
}

TEST_F(PlanOn, the_document_says_the_same_and_its_edits_work) {
  const Captured seen = plan("--on a2-highgpu-2g:1 --best 3 --json --out plan.json");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node whole = parse_json(seen.out, "stdout").value();
  const Node& document = *whole.find("search");
  const Node* chosen = document.find("chosen");
  ASSERT_TRUE(chosen != nullptr && chosen->is_map());
  double sum = 0;
  for (const Node::Entry& share : chosen->find("seconds_by_share")->entries()) sum += share.value.as_double().value();
  EXPECT_NEAR(sum, chosen->find("step_seconds")->as_double().value(), 1e-9);
  const double hours = chosen->find("total_seconds")->as_double().value() / 3600;
  const Node* price = document.find("offers")->items()[0].find("price");
  EXPECT_NEAR(chosen->find("dollars")->as_double().value(),
              hours * price->find("dollars_per_hour")->as_double().value(), 1e-12);
  for (const char* key : {"step_known_error", "memory_known_error"})
    EXPECT_NE(chosen->find(key)->find("words")->text().find("published rows"), std::string::npos);
  EXPECT_EQ(document.find("lost")->items().size(), 2u);
  for (const Node& lost : document.find("lost")->items()) {
    const Captured shown = systole_.shell("eval $SYSTOLE show topology job.yaml \"" + lost.find("edit")->text() + "\"");
    EXPECT_EQ(shown.exit.code, 0) << lost.find("edit")->text() << "\n" << shown.err;
  }
  const Captured written = systole_.shell("cat plan.json");
  EXPECT_EQ(parse_json(written.out, "plan.json").value().find("strategy")->text(), chosen->find("layout")->text());
}

// The project quotas that the choice needs, which are often 0: for its chips, and others.
TEST_F(PlanOn, tells_the_quota_that_the_choice_needs) {
  const Captured gpus = plan("--on a3-highgpu-8g:1 --best 1");
  ASSERT_EQ(gpus.exit.code, 0) << gpus.err;
  for (const char* words : {"  quota   GPUS_ALL_REGIONS of the project: 8 GPUs; usually 0 in new projects\n",
                            "GPUS_PER_GPU_FAMILY (gpu_family=NVIDIA_H100) in ", ": 8 GPUs; usually 0\n",
                            "CPUS_PER_VM_FAMILY (vm_family=A3) in ", ": 208 vCPUs\n", "SSD_TOTAL_GB in ", ": 200 GB;",
                            "IN_USE_ADDRESSES in "})
    EXPECT_NE(gpus.out.find(words), std::string::npos) << words << "\n" << gpus.out;
  const Captured chips = plan("--on v5e:2x2 --best 1 --json");
  ASSERT_EQ(chips.exit.code, 0) << chips.err;
  const Node document = parse_json(chips.out, "stdout").value();
  const Node& first = document.find("search")->find("quotas")->items()[0];
  EXPECT_EQ(first.find("metric")->text(), "TPU_LITE_PODSLICE_V5");
  EXPECT_EQ(first.find("amount")->as_int().value(), 4);
  EXPECT_NE(first.find("region")->text(), "");
}

// Spot machines have their own quotas.
TEST_F(PlanOn, tells_the_quota_of_the_terms_that_are_asked_for) {
  const Captured gpus = plan("--on a2-highgpu-1g:1 --best 1 --set resources.provisioning=spot");
  ASSERT_EQ(gpus.exit.code, 0) << gpus.err;
  EXPECT_NE(gpus.out.find("PREEMPTIBLE_NVIDIA_A100_GPUS in "), std::string::npos) << gpus.out;
  EXPECT_EQ(gpus.out.find("GPUS_ALL_REGIONS"), std::string::npos) << gpus.out;
  EXPECT_EQ(gpus.out.find(" NVIDIA_A100_GPUS"), std::string::npos) << gpus.out;
  const Captured chips = plan("--on v5e:2x2 --best 1 --json --set resources.provisioning=spot");
  ASSERT_EQ(chips.exit.code, 0) << chips.err;
  const Node document = parse_json(chips.out, "stdout").value();
  EXPECT_EQ(document.find("search")->find("quotas")->items()[0].find("metric")->text(),
            "PREEMPTIBLE_TPU_LITE_PODSLICE_V5");
}

TEST_F(PlanOn, an_option_is_explained_beside_the_choice) {
  const Captured by_number = plan("--on a2-highgpu-1g:1,v5e:1 --explain 1");
  EXPECT_EQ(by_number.exit.code, 0) << by_number.err;
  EXPECT_NE(by_number.out.find("time of a step"), std::string::npos) << by_number.out;
  EXPECT_NE(by_number.out.find("difference"), std::string::npos);
  expect_refused("--on v5e:1 --explain 99", 2, "no option that lost is '99'", "1 to ");
}

TEST_F(PlanOn, f32_is_priced_as_f32_or_not_at_all) {
  const Captured seen = plan("--on v5e:1 --best 1 --set train.precision=f32");
  EXPECT_NE(seen.err.find("many times slower than bf16"), std::string::npos) << seen.err;
  EXPECT_NE(seen.out.find("error unknown: no published rows"), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find("computed in bf16"), std::string::npos) << seen.out;
  const Captured gpu = plan("--on h100:1 --best 1 --set train.precision=f32 --json");
  EXPECT_NE(gpu.out.find("\"but\": \"products in tf32\""), std::string::npos) << gpu.out << gpu.err;
  expect_refused("--on b300:8 --set train.precision=f32", 3, "nobody states how fast b300 does products in f32",
                 "--set train.precision=bf16");
}

TEST_F(PlanOn, chips_without_bf16_are_refused_for_it) {
  expect_refused("--on t4:4", 3, "t4 has no bf16", "--set train.precision=f32");
  for (const char* precision : {"f32", "f16"}) {
    const Captured seen = plan(std::string("--on t4:4 --best 1 --set train.precision=") + precision);
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    EXPECT_EQ(seen.out.find("computed in bf16"), std::string::npos) << seen.out;
  }
}

TEST_F(PlanOn, terms_that_are_not_planned_are_told_of) {
  const Captured spot = plan("--on v5e:1 --best 1 --set resources.provisioning=spot");
  EXPECT_EQ(spot.exit.code, 0) << spot.err;
  EXPECT_NE(spot.err.find("resources.provisioning: spot: dollars here are those of machines on demand"),
            std::string::npos)
      << spot.err;
  const Captured scaled = plan("--on v5e --scale 1,4 --set resources.provisioning=spot --set ranks.tls=true");
  EXPECT_NE(scaled.err.find("resources.provisioning: spot"), std::string::npos) << scaled.err;
  EXPECT_NE(scaled.err.find("ranks.tls: its cost is not in the estimate"), std::string::npos) << scaled.err;
  EXPECT_EQ(plan("--on v5e:1 --best 1").err.find("resources.provisioning"), std::string::npos);
}

TEST_F(PlanOn, a_price_says_its_age_or_why_there_is_none) {
  const Captured known = plan("--on a2-highgpu-1g:1 --best 1");
  const std::size_t at = known.out.find("(price of 20");
  ASSERT_NE(at, std::string::npos) << known.out;
  const Node priced = parse_json(plan("--on a2-highgpu-1g:1 --best 1 --json").out, "stdout").value();
  const bool old = priced.find("search")->find("offers")->items()[0].find("price")->find("old")->as_bool().value();
  EXPECT_EQ(known.out.find(" days old)", at) == known.out.find(")", at) - 9, old) << known.out;
  const Captured unknown = plan("--on h100:1 --best 1");
  EXPECT_NE(unknown.out.find("price unknown: it is not had on demand, only by spot (from $"), std::string::npos)
      << unknown.out;
}

// Two slices with a slow network between them: the choice is a pipeline, which XLA does not run.
TEST_F(PlanOn, a_pipeline_says_what_it_needs_and_what_does_without) {
  systole_.write("big.yaml",
                 "systole: 1\nname: big\nmodel: { preset: llama3-70b }\ndata: { train: { files: a.txt }, tokenizer: { "
                 "vocabulary: 32000 } }\ntrain: { batch: 256, steps: 1000, optimizer: { rate: 1e-4 }, precision: bf16 "
                 "}\n");
  const Captured seen = systole_.shell("$SYSTOLE plan big.yaml --on v6e:8x8:2 --best 1 --quiet");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  ASSERT_NE(seen.out.find("  layout  pipe="), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find("  needs   software that runs pipelines: `run --device tpu | gpu` and `prove` take"),
            std::string::npos)
      << seen.out;
  EXPECT_NE(seen.out.find("; option 1 does without"), std::string::npos) << seen.out;
  const std::size_t option = seen.out.find("\n1  ");
  ASSERT_NE(option, std::string::npos) << seen.out;
  EXPECT_EQ(seen.out.substr(option, seen.out.find('\n', option + 1) - option).find("pipe"), std::string::npos);
  const Captured scaled = systole_.shell("$SYSTOLE plan big.yaml --on v6e --scale 256,512 --quiet");
  EXPECT_EQ(scaled.out.find("pipe=") != std::string::npos,
            scaled.out.find("\npipe needs software") != std::string::npos)
      << scaled.out;
}

TEST_F(PlanOn, rows_that_are_nothing_are_left_out) {
  const Captured seen = plan("--on a2-highgpu-2g:1 --best 1");
  const std::size_t rows = seen.out.find("where the time goes");
  ASSERT_NE(rows, std::string::npos) << seen.out;
  EXPECT_EQ(seen.out.find(" 0.0%", rows), std::string::npos) << seen.out;
  EXPECT_EQ(seen.out.find(" ns "), std::string::npos) << seen.out;
}

TEST_F(PlanOn, bars_are_as_long_as_the_terminal_lets_them_be) {
  const Captured seen =
      systole_.shell("script -qec \"stty cols 60; $SYSTOLE plan job.yaml --on a2-highgpu-2g:1 --best 1\" /dev/null");
  ASSERT_EQ(seen.exit.code, 0) << seen.out << seen.err;
  int bars = 0;
  for (std::size_t begun = 0, end; (end = seen.out.find("\r\n", begun)) != seen.out.npos; begun = end + 2) {
    const std::string line = seen.out.substr(begun, end - begun);
    if (!line.ends_with("###")) continue;
    ++bars;
    EXPECT_LE(line.size(), 60u) << line;
    EXPECT_NE(line.find_first_of("0123456789"), line.npos) << "its row is another line: " << line;
  }
  EXPECT_GT(bars, 0) << seen.out;
}

TEST_F(PlanOn, precision_is_part_of_the_choice_where_it_is_asked_for) {
  const Captured seen = plan("--on v5p:2x2x1,h100:1 --best 1 --precision bf16,fp8 --json");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node search = *parse_json(seen.out, "stdout").value().find("search");
  std::string offers;
  for (const Node& offer : search.find("offers")->items()) offers += offer.find("name")->text() + "; ";
  EXPECT_NE(offers.find("(1 h100), products in fp8; "), std::string::npos) << offers;
  // No run supports them.
  expect_refused("--on v5p:2x2x1 --best 1 --precision fp8 --out fp8.json", 3, "run --plan would do them in bf16",
                 "--precision bf16");
  EXPECT_NE(systole_.shell("test -e fp8.json").exit.code, 0);
  expect_refused("--on v5e:1 --precision fp16", 2, "--precision fp16: the workload computes in 16 bits", "fp8");
  expect_refused("--on v5e:1 --precision tf32", 2, "--precision tf32", "--set train.precision=f32");
  expect_refused("--on a2-highgpu-1g:1 --precision fp8", 3, "does products in fp8", "--precision bf16");
}

TEST_F(PlanOn, a_model_without_layers_is_refused_for_what_it_is) {
  systole_.write("mlp.yaml",
                 "systole: 1\nname: m\nmodel: { family: mlp, inputs: 4, hidden: [], outputs: 2, loss: squared_error }\n"
                 "data: { kind: linear }\ntrain: { batch: 2, steps: 10, optimizer: { rate: 1e-3 } }\n");
  for (const char* options : {"--on v5e:1", "--on v5e --scale 1,4"}) {
    const Captured seen = systole_.shell(std::string("$SYSTOLE plan mlp.yaml ") + options);
    EXPECT_EQ(seen.exit.code, 3) << seen.out << seen.err;
    EXPECT_NE(seen.err.find("family mlp"), std::string::npos) << seen.err;
    EXPECT_NE(seen.err.find("hint: systole plan mlp.yaml"), std::string::npos) << seen.err;
  }
}

TEST_F(PlanOn, charts_are_drawn_but_not_with_quiet_or_json) {
  const char* offers = "--on a2-highgpu-1g:1,v5e:1,v5e:4,v6e:1 --best 2 ";
  const Captured seen = plan(offers);
  for (const char* words :
       {"dollars (● the choice", "a step: █ products", "▓ memory-bound ops and launches, ▒ exposed communication", "┬"})
    EXPECT_NE(seen.out.find(words), std::string::npos) << words << "\n" << seen.out;
  for (const char* option : {"--quiet", "--json"})
    EXPECT_EQ(plan(std::string(offers) + option).out.find("┬"), std::string::npos);
}

TEST_F(PlanOn, here_too_it_is_said_how_far_off_times_are) {
  const Captured seen = plan("");
  EXPECT_NE(seen.out.find("\nhow far off these times are is "), std::string::npos) << seen.out << seen.err;
}

TEST_F(PlanOn, nothing_is_written_unless_asked) {
  plan("--on v5e:1");
  EXPECT_EQ(systole_.shell("ls").out, "job.yaml\n");
}

// The target to run it is named among the hardware, or by the workload's keys.
TEST_F(PlanOn, an_offer_that_its_target_cannot_run_loses_with_the_reason) {
  const std::string hardware = "--best 1 --json --on a2-highgpu-1g:1,v5e:1";
  const Captured any = plan(hardware);
  EXPECT_EQ(any.out.find("Slurm"), std::string::npos) << any.out;
  EXPECT_EQ(any.out.find("\"targets\""), std::string::npos) << any.out;
  const Captured named = plan(hardware + ",slurm");
  systole_.write("job.yaml", std::string(kTinyPlanJob) + "slurm: { partition: gpu }\n");
  const Captured by_keys = plan(hardware);
  for (const Captured* seen : {&named, &by_keys}) {
    ASSERT_EQ(seen->exit.code, 0) << seen->err;
    const Node whole = parse_json(seen->out, "stdout").value();
    const Node& search = *whole.find("search");
    const Node& lost = search.find("lost")->items().back();
    EXPECT_EQ(lost.find("reason")->text(), "Slurm has no TPUs here");
    EXPECT_EQ(lost.find("edit")->text(), "--on kubernetes or gke or ssh; or other accelerators");
    const auto at = static_cast<std::size_t>(lost.find("offer")->as_int().value());
    EXPECT_TRUE(search.find("offers")->items()[at].find("target")->text().starts_with("v5e:1"));
    const Node& target = search.find("targets")->items()[0];
    EXPECT_EQ(target.find("name")->text(), "slurm");
    EXPECT_EQ(target.find("words")->text(), "a cluster of Slurm has its machines already");
  }
  const Captured elsewhere = plan(hardware + ",kubernetes");
  EXPECT_EQ(elsewhere.out.find("has no TPUs"), std::string::npos) << "--on is before the keys: " << elsewhere.out;
}

TEST_F(PlanOn, what_its_target_cannot_do_is_refused_with_the_targets_that_can) {
  expect_refused("--on v5e:1,slurm", 3, ": Slurm has no TPUs here (--on slurm)", "--on kubernetes or gke or ssh");
  expect_refused("--on a2-highgpu-1g:1,ssh --set resources.provisioning=spot", 3,
                 "resources.provisioning: its machines are there already", "--on kubernetes or gke");
  expect_refused("--on a2-highgpu-1g:1,docker", 3, "it builds what starts one",
                 "--on slurm or kubernetes or gke or ssh");
  expect_refused("--on h100,slurm --scale 1,2", 2, "--scale sets hardware beside each other", "--scale 64,128");
  systole_.write("job.yaml", std::string(kTinyPlanJob) + "slurm: { array: 0:3 }\n");
  expect_refused("--on a2-highgpu-1g:1,kubernetes", 3, "slurm.array: a Job here is one run", "--on slurm");
  EXPECT_EQ(plan("--on a2-highgpu-1g:1 --best 1").exit.code, 0) << "its keys name slurm, which has arrays";
}

TEST_F(PlanOn, the_choice_says_what_its_target_does) {
  const Captured spot = plan("--on a2-highgpu-1g:1,gke --best 1 --set resources.provisioning=spot");
  ASSERT_EQ(spot.exit.code, 0) << spot.err;
  for (const char* words :
       {"  target  gke: it makes a cluster with node pools", "a run that is preempted begins again, "})
    EXPECT_NE(spot.out.find(words), std::string::npos) << words << spot.out;
  const Captured nodes = plan("--on a2-highgpu-1g:2,kubernetes --best 1");
  ASSERT_EQ(nodes.exit.code, 0) << nodes.err;
  EXPECT_NE(nodes.out.find("its nodes start together with `kubernetes.queue`"), std::string::npos) << nodes.out;
  EXPECT_EQ(spot.out.find("start together"), std::string::npos) << "one node: " << spot.out;
}

TEST_F(PlanOn, a_target_alone_is_planned_on_the_hardware_of_the_workload) {
  expect_refused("--on slurm", 2, "--on slurm names a target, and nothing names its hardware", "--on slurm,h100:8");
  const Captured seen = plan("--on slurm --best 1 --set resources.accelerators=a2-highgpu-1g:1");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find("a2-highgpu-1g"), std::string::npos) << seen.out;
}

TEST_F(PlanOn, limits_that_nothing_meets_end_with_1_and_what_would) {
  expect_refused("--on v5e:1 --deadline 1s --chips-at-most 4", 1, "deadline missed by ", "--deadline ");
  expect_refused("--on v5e:1 --budget 0.001 --chips-at-most 4", 1, "over budget by ", "--budget ");
  EXPECT_EQ(plan("--on v5e:1 --budget 0.001 --chips-at-most 4 --json").exit.code, 1);
  expect_refused("--on v5e:1 --set objective.budget=0.001 --chips-at-most 4", 1, "over budget by ", "--budget ");
}

TEST_F(PlanOn, of_limits_that_contradict_each_other_both_are_named) {
  expect_refused("--on h100:2 --best 1 --budget 10", 2, "--budget needs a price", "leave --budget out");
  expect_refused("--on h100:2 --best 1 --objective cheapest", 2, "--objective in dollars needs a price", "--objective");
  expect_refused("--on h100:8 --chips-at-most 4", 2, "--chips-at-most allows 4", "--chips-at-most 8");
  expect_refused("--on v5e:1 --zone us-west4-a --region us-east1", 2, "--zone us-west4-a lies in us-west4",
                 "--region us-west4");
  // The a100 is faster and more expensive: in time but over budget; the v5e is the opposite.
  expect_refused(
      "--set model.width=2048 --set model.mlp=8192 --set train.batch=64 --set model.context=512 --on "
      "a2-highgpu-1g:1,v5e:1 --best 1 --deadline 3min --budget 0.1",
      1, "--deadline and --budget contradict each other: in time, the cheapest is 1 x a2-highgpu-1g", "--deadline 24");
}

// All cost for the same time, so steps within it are compared, and only prices decide what is over budget.
TEST_F(PlanOn, where_a_time_ends_training_steps_in_it_are_compared) {
  const std::string by_time = "--set train.steps=null --set train.time=1h --best 1 --on a2-highgpu-1g:1,v5e:1,h100:8";
  const Captured seen = plan(by_time + " --json");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node search = *parse_json(seen.out, "stdout").value().find("search");
  const Node& chosen = *search.find("chosen");
  const double steps = search.find("steps")->as_double().value(),
               step = chosen.find("step_seconds")->as_double().value();
  EXPECT_EQ(steps, std::floor(3600 / step));
  EXPECT_EQ(search.find("lost")->items().size(), 2u);
  EXPECT_NE(plan(by_time).out.find("as many as the choice does in train.time, 1 h"), std::string::npos)
      << plan(by_time).out;
  const Captured within = plan(by_time + " --budget 10");
  EXPECT_EQ(within.exit.code, 0) << within.err;
  EXPECT_NE(within.err.find("left out: h100: 1 h 00 min costs at least $"), std::string::npos) << within.err;
  expect_refused(by_time + " --deadline 30min", 2, "train.time and --deadline contradict each other",
                 "--set train.time=1800s");
  expect_refused(by_time + " --budget 0.5", 1, "train.time and --budget contradict each other", "--budget 1.");
}

TEST_F(PlanOn, this_machine_stands_beside_what_is_offered) {
  const Captured seen = plan("--on this,v5e:1 --best 1 --json");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node search = *parse_json(seen.out, "stdout").value().find("search");
  const Node& here = *search.find("this_machine");
  const Node alone = parse_json(plan("--json").out, "stdout").value();
  double step = 0;
  for (const Node::Entry& part : alone.find("time")->find("step_s")->entries())
    if (!part.value.is_map()) step += part.value.as_double().value();  // times per kind of wait; empty here
  EXPECT_NEAR(here.find("step_seconds")->as_double().value(), step, 1e-9);
  EXPECT_EQ(here.find("memory_bytes")->as_int().value(), alone.find("total_bytes")->as_int().value());
  EXPECT_EQ(here.find("dollars")->as_double().value(), 0);
  EXPECT_NE(plan("--on this,v5e:1 --best 1").out.find("for $0"), std::string::npos);
  EXPECT_TRUE(parse_json(plan("--on v5e:1 --best 1 --json").out, "stdout")
                  .value()
                  .find("search")
                  ->find("this_machine")
                  ->is_null());
  expect_refused("--on this", 2, "alone, this machine is planned for without --on", "systole plan");
}

TEST_F(PlanOn, what_is_wrong_is_said_with_what_is_right) {
  expect_refused("--on v5e:4@a3-highgpu-8g", 2, "v5e is a TPU, which comes in slices", "v5e:4");
  expect_refused("--on h100:8@a2-highgpu-8g", 2, "a2-highgpu-8g cannot have h100", "a3-highgpu-8g");
  expect_refused("--on v5p:4x5x6", 2, "no slice v5p:4x5x6", "the nearest are v5p:4x4x8");
  expect_refused("--on h10:8", 2, "called 'h10'", "h100");
  expect_refused("--on v5e:1 --deadline soon", 2, "--deadline: 'soon'", "30d");
  expect_refused("--on v5e:1 --budget lots", 2, "--budget: 'lots'", "1M");
  expect_refused("--on v5e:1 --stack megatrn", 2, "no profile is called 'megatrn'", "megatron");
  expect_refused("--on v5e:1 --objective quick", 2, "--objective", "--help");
  expect_refused("--objective cheapest", 2, "--on", "--help");
  expect_refused("--on v5e:1 --out none/plan.json", 2, "cannot write 'none/plan.json'", "a folder that is there");
}

}  // namespace
}  // namespace systole::cli
