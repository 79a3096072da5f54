// sharded-is-unsharded with context parallelism (axis context: rows are sharded along their tokens). A step on any such
// mesh gives the loss, norm, moments and parameters of the step on one device, in f64 to 1e-12, and each rank computes
// and sends exactly what its Program states, as integers. With dropout each token keeps the random bits of its position
// in its row. Attention's work is counted exactly, and is the same on every device. SYSTOLE_TEST_LONG=1 tries each mesh
// with each family, otherwise with one.

#include <gtest/gtest.h>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"

namespace systole::laws {
namespace {

constexpr bool kDropout = true;
constexpr std::int64_t kTokens = 24;  // per row: divisible by 2n for n of 2, 3 and 4

DecoderSpec long_rows(DecoderSpec config) {
  config = divisible(config);
  config.context = kTokens;
  config.dropout = 0.25;
  return config;
}

struct Case {
  const char* mesh;
  int microbatches = 1;
  ShardingStrategy::Stored stored = ShardingStrategy::Stored::parameters;
};

Strategy strategy_of(const Case& c) {
  Strategy strategy = exact_strategy();
  strategy.microbatches = c.microbatches;
  strategy.sharding.stored = c.stored;
  strategy.optimizer.kind = UpdateRule::Kind::sgd;
  strategy.optimizer.sgd.momentum = 0.9;
  return strategy;
}

void expect_unsharded(const Model& model, const Batch& batch, const Case& c) {
  SCOPED_TRACE(fmt::format("{} on {}, {} microbatches", model.family(), c.mesh, c.microbatches));
  const Strategy strategy = strategy_of(c);
  TinyJob one(model, 4, strategy, make_reference_device(), kDropout);
  TinyMesh mesh(model, 4, strategy, Mesh::parse(c.mesh).value(), kDropout,
                [](std::int64_t) { return make_reference_device(); });
  const double worst = expect_step_of_one(mesh, one, batch);
  if (::testing::Test::HasFatalFailure()) return;
  one.set_evaluation(batch);
  one.executor().run(one.program().schedule_named("evaluate")).value();
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) mesh.job(rank).set_evaluation(batch);
  mesh.run("evaluate");
  EXPECT_NEAR(mesh.job(0).get("evaluate/loss")[0], one.get("evaluate/loss")[0], 1e-12 * one.get("evaluate/loss")[0]);
  fmt::print("{:<6} {:<26} {} microbatches: worst {:.4f} of its tolerance\n", model.family(), c.mesh, c.microbatches,
             worst);
}

TEST(ShardedIsUnsharded, rows_cut_along_their_tokens) {
  using Stored = ShardingStrategy::Stored;
  const std::vector<Case> cases{{"context=2"},
                                {"context=3"},
                                {"context=4", 2},
                                {"data=2 context=2", 2},
                                {"context=2 data=2", 1},
                                {"fsdp=2 context=2", 2, Stored::parameters},
                                {"context=3 fsdp=2", 1, Stored::gradients},
                                {"fsdp=2 context=2", 1, Stored::state},
                                {"context=2 model=2", 1},
                                {"model=3 context=2", 1},
                                {"data=2 context=2 model=2", 1}};
  const Batch batch = language_batch(4, 12, 9, kTokens);
  const DecoderSpec families[] = {long_rows(tiny_gpt()), long_rows(tiny_llama())};
  for (std::size_t f = 0; f < std::size(families); ++f) {
    const auto model = make_decoder(families[f]);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      if (is_tried({f, c})) expect_unsharded(*model, batch, cases[c]);
    }
  }
}

DecoderSpec latent_heads() {
  DecoderSpec config = long_rows(tiny_llama());
  config.kv_heads = 0;
  config.mla = {.q_rank = 7, .kv_rank = 5, .nope = 4, .rope = 2, .value = 3};
  return config;
}

// Latent attention slices, concatenates and pads heads, never rows.
TEST(ShardedIsUnsharded, latent_attention_along_tokens) {
  const Batch batch = language_batch(4, 12, 9, kTokens);
  const auto model = make_decoder(latent_heads());
  const std::vector<Case> cases{{"context=2"},
                                {"context=3", 2},
                                {"data=2 context=2", 2},
                                {"fsdp=2 context=2", 1, ShardingStrategy::Stored::parameters}};
  for (std::size_t c = 0; c < cases.size(); ++c) {
    if (is_tried({c})) expect_unsharded(*model, batch, cases[c]);
  }
}

// Each device has two whole pairs of chunks for each other device, and its own pairs: 1/n of the attention work, as of
// all other work.
TEST(ShardedIsUnsharded, every_device_has_an_equal_part_of_the_work) {
  const Strategy strategy = exact_strategy();
  for (const DecoderSpec& config : {long_rows(tiny_llama()), latent_heads()}) {
    const auto model = make_decoder(config);
    const TinyJob one(*model, 4, strategy, make_reference_device(), kDropout);
    for (const std::int64_t parts : {2, 3, 4}) {
      TinyMesh mesh(*model, 4, strategy, Mesh::parse(fmt::format("context={}", parts)).value(), kDropout,
                    [](std::int64_t) { return make_reference_device(); });
      for (const char* name : {"forward", "backward", "evaluate"}) {
        EXPECT_EQ(mesh.program().function_named(name).work.model_flops * parts,
                  one.program().function_named(name).work.model_flops)
            << name << " in " << parts;
      }
    }
  }
}

// On each of n devices a block gathers keys, values and their segments, and in backward reduces and scatters their
// gradients. Apart from these, only the loss is reduced along tokens. Parameters' gradients are summed once.
TEST(ShardedIsUnsharded, along_tokens_only_keys_and_values_are_sent) {
  const DecoderSpec config = long_rows(tiny_llama());
  const auto model = make_decoder(config);
  for (const std::int64_t parts : {2, 3, 4}) {
    TinyMesh mesh(*model, 4, exact_strategy(), Mesh::parse(fmt::format("context={}", parts)).value(), kDropout,
                  [](std::int64_t) { return make_reference_device(); });
    const std::int64_t tokens = 4 * kTokens / parts, others = parts - 1;
    const std::int64_t keys = tokens * config.kv_heads * config.head * 8, segments = tokens * 4;
    const auto sent = [&](const char* name) {  // in total over all devices
      std::int64_t sum = 0;
      for (std::int64_t device = 0; device < parts; ++device)
        sum += bytes_sent(mesh.program(), mesh.program().function_named(name), device).count();
      return sum;
    };
    const std::int64_t gathered = config.layers * parts * others * (2 * keys + segments);
    const std::int64_t scattered = config.layers * parts * others * 2 * keys, loss = 2 * others * 8;
    EXPECT_EQ(sent("forward"), gathered + loss) << parts;
    EXPECT_EQ(sent("evaluate"), gathered + loss) << parts;
    EXPECT_EQ(sent("backward"), gathered + scattered) << parts;
  }
}

TEST(ShardedIsUnsharded, rows_that_cannot_be_cut_along_their_tokens_are_refused) {
  const auto refusal = [](const DecoderSpec& config, const char* mesh) -> std::string {
    try {
      const auto model = make_decoder(config);
      training_program("tiny", model->loss({4, config.context}, true), std::nullopt, Mesh::parse(mesh).value(),
                       exact_strategy(), make_reference_device()->target(), nullptr);
    } catch (const Failure& failure) { return failure.error().message; }
    return "";
  };
  DecoderSpec config = long_rows(tiny_gpt());
  EXPECT_EQ(refusal(config, "context=2"), "");
  EXPECT_EQ(refusal(config, "context=8"),
            "rows of 24 tokens are not cut into 2 × 8 chunks, two for each device along 'context'");
  config.dropout = 0;
  EXPECT_EQ(refusal(config, "context=8"), "attention_c10: zigzag order of 8 parts for 24 queries and 24 keys");
  config = long_rows(tiny_windowed());
  EXPECT_EQ(refusal(config, "context=2"), "a window of attention on a mesh with an axis 'context' is not done yet");
  config = long_rows(tiny_gpt());
  config.heads = config.kv_heads = 3;
  EXPECT_EQ(refusal(config, "context=2 model=2"),
            "rows in zigzag order of 2 parts are cut into 4 over 'context,model'");
}

}  // namespace
}  // namespace systole::laws
