// `systole plan`, `check` and `explain` of workloads that serve, and what other commands say of them.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kChat = R"(systole: 1
name: chat
workload: serve
model: { family: llama, layers: 2, width: 32, heads: 2, kv_heads: 1, mlp: 64, context: 64, vocabulary: 288 }
serve:
  slots: 2
  objective: { ttft: 10s, tpot: 1s }
  traffic: { rate: 0.5, requests: 300, prompt: 20, answer: 5 }
)";

class PlanServe : public testing::Test {
 protected:
  PlanServe() { systole_.write("chat.yaml", kChat); }
  Captured shell(const std::string& words) const { return systole_.shell("$SYSTOLE " + words); }
  void expect_refused(const std::string& words, int exit, const std::string& message, const std::string& hint) const {
    const Captured seen = shell(words);
    EXPECT_EQ(seen.exit.code, exit) << words << seen.out << seen.err;
    EXPECT_NE(seen.err.find(message), std::string::npos) << seen.err;
    EXPECT_NE(seen.err.find(hint, seen.err.find("hint:")), std::string::npos) << seen.err;
  }
  SystoleRunner systole_;
};

TEST_F(PlanServe, tells_what_this_machine_carries) {
  const Captured seen = shell("plan chat.yaml");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  std::size_t at = 0;
  for (const char* words :
       {"chat: ", "2 sequences of 64 tokens at once", "traffic: 0.5 requests/s", "wanted: the first token within",
        "  fits     ", "keys and values", "  prefill  16 ", "  decode   ", "  carries  ", "95% within", "  asked    ",
        "1 replica", "  cost     unknown", "300 requests of seed 0"}) {
    const std::size_t next = seen.out.find(words, at);
    ASSERT_NE(next, std::string::npos) << words << "\n" << seen.out;
    at = next;
  }
  EXPECT_NE(seen.err.find("next: systole serve RUN --slots 2 --context 64 --waiting 64"), std::string::npos)
      << seen.err;
  EXPECT_EQ(seen.out.find("replicas"), std::string::npos) << "one row needs no table";
}

TEST_F(PlanServe, one_replica_that_idles_is_priced_and_on_spot_it_is_warned_of) {
  const Captured seen = shell("plan chat.yaml --set resources.price=3.6 --set resources.provisioning=spot");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find(" at 0.5 requests/s: "), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find("% of it while they idle; $"), std::string::npos) << seen.out;
  EXPECT_NE(seen.err.find("warning: serve.replicas: 1, on a spot machine"), std::string::npos) << seen.err;
  EXPECT_EQ(shell("plan chat.yaml --set resources.price=3.6").err.find("spot"), std::string::npos);
}

TEST_F(PlanServe, the_document_has_its_memory_in_bytes) {
  const Captured seen = shell("plan chat.yaml --json --set resources.price=3.6");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node document = parse_json(seen.out, "stdout").value();
  const Node& row = document.find("serving")->find("rows")->items()[0];
  // 2 layers × 2 slots × 64 tokens × 1 head of 16, of keys and of values, in f32.
  EXPECT_EQ(row.find("memory_bytes")->find("cache")->as_int().value(), 2 * 2 * 2 * 64 * 16 * 4);
  const double tokens = row.find("at_most_load")->find("tokens_per_second")->as_double().value();
  EXPECT_NEAR(row.find("dollars_per_million_tokens")->as_double().value() * tokens, 1e-3 * 1e6, 1e-3);
}

TEST_F(PlanServe, weights_in_int8_are_served_with_that_option) {
  const Captured seen = shell("plan chat.yaml --set serve.parameter=i8");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find(" parameters in i8, "), std::string::npos) << seen.out;
  EXPECT_NE(seen.err.find("--waiting 64 --weights int8"), std::string::npos) << seen.err;
}

TEST_F(PlanServe, weights_in_int4_are_planned_at_their_groups) {
  const std::string words =
      "plan " SYSTOLE_SOURCE_DIR "/examples/serve-8b.yaml --on tpu7x:1 --json --set serve.parameter=";
  const auto parameters = [&](const char* type) {
    const Captured seen = shell(words + type);
    const Node document = parse_json(seen.out, "stdout").value();
    return document.find("serving")
        ->find("rows")
        ->items()[0]
        .find("memory_bytes")
        ->find("parameters")
        ->as_int()
        .value();
  };
  // Of 8.03 thousand million parameters 0.525 are the table of tokens, in f32, as many the head, in int8; of the others
  // 20 bytes hold 32.
  EXPECT_NEAR(static_cast<double>(parameters("i4")), 0.525e9 * 5 + 6.98e9 * 20 / 32, 0.02e9);
  const Captured seen = shell("plan chat.yaml --set serve.parameter=i4");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find(" parameters in i4, "), std::string::npos) << seen.out;
  EXPECT_NE(seen.err.find("--waiting 64 --weights int4"), std::string::npos) << seen.err;
}

TEST_F(PlanServe, keys_and_values_in_bf16_are_planned_and_served) {
  const Captured seen = shell("plan chat.yaml --json --set serve.cache=bf16");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node document = parse_json(seen.out, "stdout").value();
  const Node& row = document.find("serving")->find("rows")->items()[0];
  EXPECT_EQ(row.find("memory_bytes")->find("cache")->as_int().value(), 2 * 2 * 2 * 64 * 16 * 2);
  EXPECT_NE(shell("plan chat.yaml --set serve.cache=bf16").err.find("--waiting 64 --cache-type bf16"),
            std::string::npos);
  expect_refused("plan chat.yaml --set serve.cache=f16", 2, "serve.cache", "bf16");
}

// What the example is for: 8B parameters on 16 GiB.
TEST_F(PlanServe, an_8b_in_int8_fits_on_v5e_with_keys_and_values_in_bf16_alone) {
  const std::string words =
      "plan " SYSTOLE_SOURCE_DIR
      "/examples/serve-8b.yaml --set serve.parameter=i8 --set serve.traffic.requests=100 --on v5e:1";
  const Captured seen = shell(words);
  EXPECT_EQ(seen.exit.code, 0) << seen.out << seen.err;
  EXPECT_NE(seen.out.find(" in bf16 ("), std::string::npos) << seen.out;
  expect_refused(words + " --set serve.cache=f32", 1, "does not fit", "--set serve.cache=bf16");
}

TEST_F(PlanServe, computing_in_bf16_is_of_accelerators) {
  const std::string wanted = "plan chat.yaml --set serve.cache=bf16 --set serve.compute=bf16";
  const Captured seen = shell(wanted + " --set serve.parameter=bf16 --on l4:1");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find("parameters in bf16, "), std::string::npos) << seen.out;
  expect_refused(wanted, 3, "serve.compute", "--set serve.compute=f32");
  expect_refused("plan chat.yaml --set serve.compute=bf16 --on l4:1", 2, "serve.compute", "serve.cache: bf16");
}

TEST_F(PlanServe, searches_precision_and_slots) {
  const Captured seen = shell("plan chat.yaml --search precision,slots --on l4:1,v5e:1");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  for (const char* words : {"** ", "i8", "bf16, computing in bf16", "a device carries", "quality"})
    EXPECT_NE(seen.out.find(words), std::string::npos) << words << "\n" << seen.out;
  EXPECT_NE(seen.err.find("best: "), std::string::npos) << seen.err;
  expect_refused("plan chat.yaml --search layout", 2, "--search", "--help");
}

TEST_F(PlanServe, fixed_pieces_are_served_with_that_option) {
  const Captured seen = shell("plan chat.yaml --set serve.prefill_tokens=32");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.err.find("--waiting 64 --prefill-tokens 32"), std::string::npos) << seen.err;
  const Captured odd = shell("plan chat.yaml --set serve.prefill_tokens=33");
  EXPECT_EQ(odd.exit.code, 2) << odd.err;
  EXPECT_NE(odd.err.find("hint: 16, 32, 64, 128, 256 or 512"), std::string::npos) << odd.err;
}

TEST_F(PlanServe, compares_what_is_offered) {
  const Captured seen = shell("plan chat.yaml --on v5e:1,l4:1,this");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  for (const char* words : {"it lost because", "v5e:1x1", "(1 l4)", "this-machine", "its price is unknown",
                            "% dearer a token", "$/1M tokens"})
    EXPECT_NE(seen.out.find(words), std::string::npos) << words << "\n" << seen.out;
}

TEST_F(PlanServe, plays_a_trace) {
  std::string trace;
  for (int i = 0; i < 50; ++i) trace += fmt::format("{{\"at\": {}, \"prompt\": 9, \"answer\": 3}}\n", i);
  systole_.write("trace.jsonl", trace);
  const Captured seen = shell("plan chat.yaml --set serve.traffic.trace=trace.jsonl");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find("traffic: 1 requests/s, 50 requests of trace.jsonl"), std::string::npos) << seen.out;
  systole_.write("trace.jsonl", "{\"at\": 0, \"prompt\": 9}\n");
  expect_refused("plan chat.yaml --set serve.traffic.trace=trace.jsonl", 2, "a request without 'answer'", "seconds");
}

TEST_F(PlanServe, what_nothing_carries_is_refused_with_the_reason) {
  expect_refused("plan chat.yaml --set serve.objective.tpot=1ns", 1, "even alone (tpot", "a longer serve.objective");
  const Captured seen = shell("plan chat.yaml --set serve.objective.tpot=1ns --json");
  EXPECT_EQ(seen.exit.code, 1);
  EXPECT_TRUE(parse_json(seen.out, "stdout").ok()) << seen.out;
}

TEST_F(PlanServe, warns_of_prompts_longer_than_the_context) {
  EXPECT_EQ(shell("plan chat.yaml").err.find("longer than serve.context"), std::string::npos);
  const Captured seen = shell("plan chat.yaml --set serve.traffic.prompt='{ mean: 60, distribution: uniform }'");
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.err.find("% of the prompts are longer than serve.context (64), and are refused"), std::string::npos)
      << seen.err;
}

TEST_F(PlanServe, options_of_training_are_refused) {
  expect_refused("plan chat.yaml --on l4:1 --deadline 3d", 2, "--deadline is of training", "leave --deadline out");
  expect_refused("plan chat.yaml --on l4:1 --all", 2, "--all is of training", "leave --all out");
  expect_refused("plan chat.yaml --out plan.json", 2, "--out is of training", "leave --out out");
  expect_refused("plan chat.yaml --on slurm,l4:1", 2, "--on slurm is what runs a job of training", "--on h100:1");
}

TEST_F(PlanServe, check_and_explain_know_it) {
  const Captured checked = shell("check chat.yaml");
  ASSERT_EQ(checked.exit.code, 0) << checked.err;
  EXPECT_NE(checked.out.find("chat.yaml: OK: "), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find("serve 2 sequences of 64 tokens at once"), std::string::npos) << checked.out;
  expect_refused("check chat.yaml --set serve.context=65", 2, "a sequence of 65 tokens", "serve.context: 64 at most");
  const Captured explained = shell("explain serve.slots chat.yaml");
  EXPECT_EQ(explained.exit.code, 0) << explained.err;
  EXPECT_NE(explained.out.find("in chat.yaml: 2"), std::string::npos) << explained.out;
}

// The cluster gets what the plan says, and check warns of what it would get.
TEST_F(PlanServe, is_what_a_cluster_is_rendered_with) {
  systole_.write("cluster.yaml",
                 std::string(kChat) +
                     "image: registry.example/systole:1\nvolumes: { /models: { bucket: models, read_only: "
                     "true } }\nresources: { accelerators: 'l4:1' }\n");
  const std::string sets = " --set serve.from=/models/chat --set serve.traffic.rate=1000000";
  const Captured planned = shell("plan chat.yaml --on l4:1 --json --set serve.traffic.rate=1000000");
  ASSERT_EQ(planned.exit.code, 0) << planned.err;
  const std::string replicas =
      parse_json(planned.out, "stdout").value().find("serving")->find("rows")->items()[0].find("replicas")->text();
  EXPECT_GT(std::stoi(replicas), 1);
  const Captured rendered = shell("render cluster.yaml --on kubernetes --dry-run" + sets);
  ASSERT_EQ(rendered.exit.code, 0) << rendered.err;
  EXPECT_NE(rendered.out.find("minReplicas: " + replicas + "\n"), std::string::npos) << rendered.out;
  EXPECT_NE(rendered.out.find(" servers: 1,000,000 requests/s expected, a device carries "), std::string::npos);

  const std::string spot = " --set serve.from=/models/chat --set resources.provisioning=spot";
  const Captured checked = shell("check cluster.yaml" + spot);
  EXPECT_EQ(checked.exit.code, 0) << checked.err;
  EXPECT_NE(checked.err.find("warning: serve.replicas: 1, on a spot machine"), std::string::npos) << checked.err;
  EXPECT_NE(checked.err.find("hint: serve.replicas: 2, or resources.provisioning: on-demand"), std::string::npos)
      << checked.err;
  const Captured on_spot = shell("render cluster.yaml --on kubernetes --dry-run" + spot);
  EXPECT_NE(on_spot.err.find("serve.replicas: 1, on a spot machine"), std::string::npos) << on_spot.err;
  EXPECT_EQ(shell("check cluster.yaml" + spot + " --set serve.replicas=2").err.find("on a spot machine"),
            std::string::npos);
  expect_refused("check cluster.yaml", 2, "serve.from: nothing says where the model is", "serve.from: /models/FOLDER");
  expect_refused("render cluster.yaml --on kubernetes --set serve.from=/m --set serve.objective.tpot=1ns", 1,
                 "carries none of this traffic", "systole plan WORKLOAD --on any");
}

TEST_F(PlanServe, submit_gives_a_server_to_kubectl) {
  expect_refused("submit chat.yaml --on kubernetes", 2, "submit starts runs, which end, and this workload serves",
                 "systole render chat.yaml --on kubernetes; it prints the line that starts it");
  expect_refused("submit chat.yaml --on slurm", 2, "submit starts runs, which end, and this workload serves",
                 "systole render chat.yaml --on slurm; it prints the line that starts it");
}

TEST_F(PlanServe, commands_that_train_say_what_to_type) {
  for (const char* words : {"run chat.yaml", "run chat.yaml --dry-run"})
    expect_refused(words, 2, "nothing here serves it", "systole plan chat.yaml plans it; systole serve RUN");
}

}  // namespace
}  // namespace systole::cli
