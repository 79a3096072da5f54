// Workloads of kind serve: their keys, what they refuse, and that they print and read back.
#include <gtest/gtest.h>

#include "describe/spec/testing/small_workload.h"

namespace systole {
namespace {

constexpr const char* kServed = R"(systole: 1
name: chat
workload: serve
model: { family: llama, layers: 2, width: 64, heads: 4, kv_heads: 2, context: 256, vocabulary: 300 }
serve:
  slots: 8
  context: 128
  objective: { ttft: 500ms, tpot: 50ms }
  traffic:
    rate: 2.5
    prompt: { mean: 60, distribution: lognormal, sigma: 0.5 }
    answer: 20
)";

TEST(SchemaServe, reads_and_prints_back) {
  const Workload w = read(kServed);
  EXPECT_EQ(w.kind, Workload::Kind::serve);
  EXPECT_FALSE(w.has_model()) << "it trains none";
  EXPECT_EQ(w.serve.slots, 8);
  EXPECT_EQ(w.serve.waiting, 64);
  EXPECT_EQ(w.serve.context, 128);
  EXPECT_EQ(w.serve.ttft, Seconds(0.5));
  EXPECT_EQ(w.serve.tpot, Seconds(0.05));
  EXPECT_EQ(w.serve.parameter, DType::f32);
  EXPECT_EQ(w.serve.traffic.rate, 2.5);
  EXPECT_EQ(w.serve.traffic.prompt, (TokenLengths{60, TokenLengths::Distribution::lognormal, 0.5}));
  EXPECT_EQ(w.serve.traffic.answer.mean, 20);
  EXPECT_EQ(w.serve.traffic.answer.distribution, TokenLengths::Distribution::fixed);
  EXPECT_EQ(w.serve.traffic.requests, 2000);
  const std::string printed = to_yaml(w);
  EXPECT_EQ(printed.find("train:"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("data:"), std::string::npos) << printed;
  EXPECT_EQ(to_yaml(read(printed)), printed);
  EXPECT_EQ(to_yaml(read(kSmall)).find("\nserve:"), std::string::npos);
}

TEST(SchemaServe, weights_may_be_in_int8) {
  const Workload w = read(kServed, {"", {"serve.parameter=i8"}});
  EXPECT_EQ(w.serve.parameter, DType::i8);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
}

TEST(SchemaServe, keys_and_values_may_be_in_bf16) {
  EXPECT_EQ(read(kServed).serve.cache, DType::f32);
  const Workload w = read(kServed, {"", {"serve.cache=bf16"}});
  EXPECT_EQ(w.serve.cache, DType::bf16);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
}

TEST(SchemaServe, pieces_of_prompts_may_be_fixed) {
  EXPECT_FALSE(read(kServed).serve.prefill_tokens);
  const Workload w = read(kServed, {"", {"serve.prefill_tokens=64"}});
  EXPECT_EQ(w.serve.prefill_tokens, 64);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
}

TEST(SchemaServe, says_where_a_cluster_serves_it) {
  const Workload w = read(
      kServed,
      {"",
       {"serve.from=/models/chat", "serve.replicas=2:6", "serve.cold_start=90s", "image=registry.example/systole:1",
        "volumes={/models: {bucket: m, read_only: true}}", "resources={accelerators: 'l4:1', provisioning: spot}",
        "kubernetes.namespace=chat", "gke={project: my-lab-7, cluster: c, location: us-central1-a}"}});
  EXPECT_EQ(w.serve.from, "/models/chat");
  EXPECT_EQ(w.serve.replicas, (CountRange{2, 6}));
  EXPECT_EQ(w.serve.cold_start, Seconds(90.0));
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
}

TEST(SchemaServe, settings_replace_the_kind_of_traffic) {
  const Workload w = read(kServed, {"", {"serve.traffic.users=30", "serve.traffic.pause=5s"}});
  EXPECT_EQ(w.serve.traffic.users, 30);
  EXPECT_FALSE(w.serve.traffic.rate);
  EXPECT_EQ(w.serve.traffic.pause, Seconds(5.0));
}

TEST(SchemaServe, refuses_what_cannot_be) {
  const struct {
    const char *from, *to, *part;
  } wrongs[] = {
      {"rate: 2.5", "rate: 0", "0 is no number of requests a second"},
      {"rate: 2.5", "rate: 2.5\n    users: 3", "exclude each other"},
      {"rate: 2.5", "seed: 1", "nothing says how many requests come"},
      {"rate: 2.5", "rate: 2.5\n    pause: 3s", "serve.traffic.pause means nothing without serve.traffic.users"},
      {"rate: 2.5", "rat: 2.5", "did you mean 'rate'?"},
      {"answer: 20", "answer: { mean: 20, sigma: 1 }", "means nothing with serve.traffic.answer.distribution: fixed"},
      {"answer: 20", "answer: 0", "too low"},
      {"ttft: 500ms", "ttft: 0.5", "has no unit"},
      {"context: 128", "context: 512", "serve.context: 256 at most"},
      {", vocabulary: 300", "", "no tokenizer says it"},
      {"slots: 8", "slots: 0", "serve.slots"},
      {"slots: 8", "slots: 8\n  parameter: f64", "f32, bf16, f16, i8"},
      {"slots: 8", "slots: 8\n  prefill_tokens: 48", "48 is no power of two"},
      {"slots: 8", "slots: 8\n  prefill_tokens: 8", "8 is too low"},
      {"slots: 8", "slots: 8\n  prefill_tokens: 1024", "16 to 512"},
      {"name: chat", "name: chat\ntrain: { batch: 3 }", "train means nothing with workload: serve"},
      {"name: chat", "name: chat\nkubernetes: { kind: jobset }", "take out kubernetes.kind, or workload: serve"},
      {"name: chat", "name: chat\nkubernetes: { kind: jobset }", "kubernetes.kind means nothing with workload: serve"},
      {"slots: 8", "slots: 8\n  replicas: 0", "serve.replicas"},
      {"name: chat", "name: chat\nmesh: { data: 2 }", "along the axis 'model' alone, not along 'data'"},
      {"name: chat", "name: chat\ncommand: python3 x.py", "command means nothing with workload: serve"},
      {"family: llama, layers: 2, width: 64, heads: 4, kv_heads: 2", "family: bert, layers: 2, width: 64, heads: 4",
       "generates no text"},
  };
  for (const auto& [from, to, part] : wrongs) {
    const std::string said = errors_of(replaced(kServed, from, to));
    EXPECT_NE(said.find(part), std::string::npos) << to << "\n" << said;
  }
}

}  // namespace
}  // namespace systole
