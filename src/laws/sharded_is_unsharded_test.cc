// sharded-is-unsharded: a step on any mesh, ranks that are threads, gives the loss, norm, moments and parameters of the
// step on one device, in f64 to 1e-12; and what each rank computes, moves and sends is what its Program states, as
// integers.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"

namespace systole::laws {
namespace {

double difference(const HostTensor& a, const HostTensor& b) {
  double largest = 1e-3, worst = 0;
  for (std::int64_t i = 0; i < b.size(); ++i) {
    largest = std::max(largest, std::abs(b.at(i)));
    worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
  }
  return worst / largest;
}

struct Case {
  const char* mesh;
  ShardingStrategy::Stored stored;
  int microbatches = 1;
  UpdateRule::Kind optimizer = UpdateRule::Kind::sgd;
};

// A gradient that is zero but for rounding (a key's bias: softmax does not see it) moves its parameter, under AdamW, by
// the rate times rounding / eps = 1e-2 * 1e-16 / 1e-8.
double tolerance(const Case& c, const ProgramValue& value) {
  return c.optimizer == UpdateRule::Kind::adamw && value.residence == Residence::parameter ? 1e-10 : 1e-12;
}

void expect_unsharded(const Model& model, const Batch& batch, std::int64_t rows, const Case& c, bool dropout) {
  SCOPED_TRACE(fmt::format("{} on {}, {} stored in parts, {} microbatches", model.family(), c.mesh, name_of(c.stored),
                           c.microbatches));
  Strategy strategy = exact_strategy();
  strategy.microbatches = c.microbatches;
  strategy.sharding.stored = c.stored;
  strategy.optimizer.kind = c.optimizer;
  strategy.optimizer.sgd.momentum = 0.9;
  TinyJob one(model, rows, strategy, make_reference_device(), dropout);
  one.begin();
  one.set_batch(batch);
  one.step();
  TinyMesh mesh(model, rows, strategy, Mesh::parse(c.mesh).value(), dropout,
                [](std::int64_t) { return make_reference_device(); });
  mesh.begin(batch);
  mesh.step();
  if (::testing::Test::HasFatalFailure()) return;
  expect_planned(mesh);
  EXPECT_NEAR(mesh.job(0).loss(), one.loss(), 1e-12 * std::abs(one.loss()));
  EXPECT_NEAR(mesh.job(0).get("norm")[0], one.get("norm")[0], 1e-12 * one.get("norm")[0]);
  for (const ProgramValue& value : one.program().values) {
    if (value.residence != Residence::parameter && value.residence != Residence::state) continue;
    EXPECT_LE(difference(mesh.whole(value.name), one.tensor(value.name)), tolerance(c, value)) << value.name;
  }
}

DecoderConfig divisible(DecoderConfig config) {
  config.width = 12;
  config.heads = 6;
  config.kv_heads = config.kv_heads == 1 ? 2 : config.kv_heads;
  config.head = 2;
  config.mlp = 18;
  config.vocabulary = 12;
  config.dropout = 0.25;
  return config;
}

TEST(ShardedIsUnsharded, decoders_over_every_axis_and_stage) {
  using Stored = ShardingStrategy::Stored;
  const Batch batch = language_batch(12, 12, 9);
  const std::vector<Case> cases{{"data=2", Stored::parameters, 1},
                                {"data=3", Stored::parameters, 2},
                                {"fsdp=2", Stored::nothing, 2},
                                {"fsdp=2", Stored::state, 2},
                                {"fsdp=4", Stored::gradients, 1},
                                {"fsdp=4", Stored::parameters, 3},
                                {"fsdp=3", Stored::parameters, 2},
                                {"model=2", Stored::parameters, 2},
                                {"model=3", Stored::parameters, 1},
                                {"data=2 fsdp=2", Stored::state, 1},
                                {"data=2 fsdp=3", Stored::parameters, 2},
                                {"data=2 model=2", Stored::parameters, 2},
                                {"fsdp=2 model=3", Stored::gradients, 2},
                                {"data=2 fsdp=2 model=2", Stored::parameters, 1},
                                {"data=2 fsdp=2 model=2", Stored::state, 1, UpdateRule::Kind::adamw}};
  for (const DecoderConfig& config : {divisible(tiny_gpt()), divisible(tiny_llama())}) {
    const auto model = make_decoder(config);
    for (const Case& c : cases) expect_unsharded(*model, batch, 12, c, true);
  }
}

TEST(ShardedIsUnsharded, a_regression_by_gradients_with_momentum) {
  MlpConfig config = tiny_mlp();
  const auto model = make_mlp(config);
  const Batch batch = regression_batch(12, 7, 3, 1);
  for (const char* mesh : {"data=4", "fsdp=4", "data=2 fsdp=2"})
    expect_unsharded(*model, batch, 12, {mesh, ShardingStrategy::Stored::parameters, 1}, false);
}

}  // namespace
}  // namespace systole::laws
