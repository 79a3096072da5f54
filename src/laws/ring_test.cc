// sharded-is-unsharded and plan-is-run for ring attention (rows sharded along tokens, ops/attention_zigzag.h): a step
// equals that of one device, in f64 to 1e-12; it sends as many bytes as gathering keys does; a permute overlaps with
// the attention of its step; and a device's memory does not grow with the axis. SYSTOLE_TEST_LONG=1 tries each mesh
// with each family, otherwise with one.

#include <gtest/gtest.h>

#include "describe/ir/rewrite.h"
#include "describe/program/collectives_of.h"
#include "describe/program/overlap.h"
#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"

namespace systole::laws {
namespace {

using Stored = ShardingStrategy::Stored;

constexpr std::int64_t kTokens = 24;  // per row: divisible by 2n for n of 2, 3 and 4

DecoderSpec long_rows(DecoderSpec config, std::int64_t tokens = kTokens) {
  config = divisible(config);
  config.context = tokens;
  config.dropout = 0;
  return config;
}

DecoderSpec latent_heads() {
  DecoderSpec config = long_rows(tiny_llama());
  config.kv_heads = 0;
  config.mla = {.q_rank = 7, .kv_rank = 5, .nope = 4, .rope = 2, .value = 3};
  return config;
}

struct Case {
  const char* mesh;
  int microbatches = 1;
  Stored stored = Stored::parameters;
};

Strategy ring_strategy(const Case& c) {
  Strategy strategy = exact_strategy();
  strategy.microbatches = c.microbatches;
  strategy.sharding.stored = c.stored;
  strategy.sharding.context_keys = ContextKeys::ring;
  strategy.optimizer.kind = UpdateRule::Kind::sgd;
  strategy.optimizer.sgd.momentum = 0.9;
  return strategy;
}

void expect_unsharded(const Model& model, const Batch& batch, const Case& c) {
  SCOPED_TRACE(fmt::format("{} on {}, {} microbatches", model.family(), c.mesh, c.microbatches));
  const Strategy strategy = ring_strategy(c);
  TinyJob one(model, 4, strategy, make_reference_device());
  TinyMesh mesh(model, 4, strategy, Mesh::parse(c.mesh).value(), false,
                [](std::int64_t) { return make_reference_device(); });
  expect_step_of_one(mesh, one, batch);
  if (::testing::Test::HasFatalFailure()) return;
  one.set_evaluation(batch);
  one.executor().run(one.program().schedule_named("evaluate")).value();
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) mesh.job(rank).set_evaluation(batch);
  mesh.run("evaluate");
  EXPECT_NEAR(mesh.job(0).get("evaluate/loss")[0], one.get("evaluate/loss")[0], 1e-12 * one.get("evaluate/loss")[0]);
}

TEST(RingAttention, is_unsharded) {
  const std::vector<Case> cases{{"context=2"},
                                {"context=3"},
                                {"context=4", 2},
                                {"data=2 context=2", 2},
                                {"context=2 data=2", 1},
                                {"fsdp=2 context=2", 2, Stored::parameters},
                                {"context=3 fsdp=2", 1, Stored::gradients},
                                {"context=2 model=2", 1},
                                {"model=3 context=2", 1},
                                {"data=2 context=2 model=2", 1}};
  const Batch batch = language_batch(4, 12, 9, kTokens);
  const DecoderSpec families[] = {long_rows(tiny_gpt()), long_rows(tiny_llama()), latent_heads()};
  for (std::size_t f = 0; f < std::size(families); ++f) {
    const auto model = make_decoder(families[f]);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      if (is_tried({f, c})) expect_unsharded(*model, batch, cases[c]);
    }
  }
}

Program program_on(std::int64_t parts, std::int64_t tokens, ContextKeys keys, const Strategy& as) {
  Strategy strategy = as;
  strategy.sharding.context_keys = keys;
  const auto model = make_decoder(long_rows(tiny_llama(), tokens));
  return training_program("tiny", model->loss({4, tokens}, true), std::nullopt,
                          Mesh::parse(fmt::format("context={}", parts)).value(), strategy,
                          make_reference_device()->target(), nullptr);
}

// A gather becomes n - 1 permutes of a shard, and a scatter as many of a partial sum, in the statistics' type; for f64
// that is the keys' type.
TEST(RingAttention, sends_as_many_bytes_as_gathering) {
  for (const std::int64_t parts : {2, 3, 4}) {
    const Program ring = program_on(parts, kTokens, ContextKeys::ring, exact_strategy()),
                  gathered = program_on(parts, kTokens, ContextKeys::all_gather, exact_strategy());
    EXPECT_NE(hash_of(ring), hash_of(gathered));
    for (const char* name : {"forward", "backward"}) {
      const Function &a = ring.function_named(name), &b = gathered.function_named(name);
      EXPECT_EQ(bytes_sent(ring, a, 0), bytes_sent(gathered, b, 0)) << name << " of " << parts;
      EXPECT_EQ(a.work.model_flops, b.work.model_flops);
    }
  }
}

// f32 sums with bf16 keys: per layer (n - 1)(k + v + segments) and (n - 1)(dk + dv).
TEST(RingAttention, sums_travel_in_the_statistics_type) {
  const DecoderSpec config = long_rows(tiny_llama());
  for (const std::int64_t parts : {2, 3}) {
    const Program ring = program_on(parts, kTokens, ContextKeys::ring, bf16_strategy());
    const std::int64_t tokens = 4 * kTokens / parts, numbers = tokens * config.kv_heads * config.head;
    const std::int64_t keys = 2 * numbers * 2 + tokens * 4, sums = 2 * numbers * 4;
    EXPECT_EQ(bytes_sent(ring, ring.function_named("backward"), 0).count(),
              config.layers * (parts - 1) * (keys + sums));
  }
}

struct Seen {
  int permutes = 0, beside = 0;  // all, and those that begin before an attention and end after it
};

void look(const Graph& graph, Seen& seen) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
    for (const Graph& body : node.regions) look(body, seen);
    if (!is(node, "collective_permute")) continue;
    ++seen.permutes;
    if (overlap_of(node) != Overlap::reader) continue;
    for (int m = n + 1; m < first_reader(graph, n); ++m) {
      const GraphNode& other = graph.nodes()[static_cast<std::size_t>(m)];
      if (!is(other, "attention") && !is(other, "attention_grad")) continue;
      ++seen.beside;
      break;
    }
  }
}

TEST(RingAttention, each_permute_runs_beside_the_attention_of_its_step) {
  for (const int parts : {2, 3, 4}) {
    const Program program = program_on(parts, kTokens, ContextKeys::ring, exact_strategy());
    Seen forward, backward;
    look(program.function_named("forward").graph, forward);
    look(program.function_named("backward").graph, backward);
    EXPECT_EQ(forward.permutes, 3 * (parts - 1)) << "keys, values and segments";
    EXPECT_EQ(backward.permutes, 5 * (parts - 1)) << "and the sums of both gradients";
    EXPECT_EQ(forward.beside, forward.permutes) << parts;
    EXPECT_EQ(backward.beside, backward.permutes) << parts;
  }
}

// At a fixed number of tokens per device, 16 more devices add a few numbers that identify peers, but no keys.
TEST(RingAttention, what_a_device_holds_does_not_grow_with_the_axis) {
  const auto grows = [](ContextKeys keys, const char* function) {
    const auto scratch = [&](std::int64_t parts) {
      return program_on(parts, 16 * parts, keys, f32_strategy()).function_named(function).scratch;
    };
    return (scratch(24) - scratch(8)).count();
  };
  const DecoderSpec config = long_rows(tiny_llama());
  const std::int64_t keys = 4 * 16 * config.kv_heads * config.head * 4;
  for (const char* function : {"forward", "backward"}) {
    EXPECT_LT(grows(ContextKeys::ring, function), keys) << function;
    EXPECT_GE(grows(ContextKeys::all_gather, function), 16 * 2 * keys) << function;
  }
}

}  // namespace
}  // namespace systole::laws
