// sharded-is-unsharded for pipelines: a step on stages, with ranks as threads, gives the loss, norm, moments and
// parameters of the step on one device, in f64 to 1e-12; and each rank computes, moves and sends exactly what its
// Program states, as integers. SYSTOLE_TEST_LONG=1 tries each layout with each family, otherwise with one.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "describe/ir/layer_names.h"
#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"

namespace systole::laws {
namespace {

using Kind = PipelineStrategy::Kind;
using Stored = ShardingStrategy::Stored;

struct Case {
  const char* mesh;
  PipelineStrategy pipeline;
  int microbatches;
  Stored stored = Stored::parameters;
};

// A device's shard of a value, from the whole.
HostTensor part_of(const HostTensor& whole, const ProgramValue& value, const Mesh& mesh, std::int64_t device) {
  const std::optional<LayerName> layers = layer_name(value.name);
  if (!layers) return cut(whole, value.cut->layout, mesh, device);
  const Shape& shape = value.cut->whole.shape;
  HostTensor own(whole.dtype(), shape);
  const std::int64_t first = layers->before() * (own.size() / shape[0]);
  for (std::int64_t i = 0; i < own.size(); ++i) own.set(i, whole.at(first + i));
  return cut(own, value.cut->layout, mesh, device);
}

// After a step. Returns the largest relative difference.
double expect_state_of_one(TinyMesh& mesh, TinyJob& one) {
  double worst = 0;
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) {
    TinyJob& job = mesh.job(rank);
    EXPECT_NEAR(job.loss(), one.loss(), 1e-12 * std::abs(one.loss())) << "rank " << rank;
    EXPECT_NEAR(job.get("norm")[0], one.get("norm")[0], 1e-12 * one.get("norm")[0]) << "rank " << rank;
    for (const ProgramValue& value : job.program().values) {
      if (value.residence != Residence::parameter && value.residence != Residence::state) continue;
      const std::optional<LayerName> layers = layer_name(value.name);
      const HostTensor whole = one.tensor(layers ? layers->whole() : value.name);
      const double apart = relative_difference(
          job.tensor(value.name), part_of(whole, value, job.program().mesh, static_cast<std::int64_t>(rank)));
      EXPECT_LE(apart, 1e-12) << value.name << " of rank " << rank;
      worst = std::max(worst, apart);
    }
  }
  return worst;
}

void expect_unstaged(const Model& model, const Batch& batch, std::int64_t rows, const Case& c) {
  SCOPED_TRACE(fmt::format("{} on {}, {} with {} chunks a stage, {} microbatches", model.family(), c.mesh,
                           name_of(c.pipeline.kind), c.pipeline.chunks_per_stage, c.microbatches));
  Strategy strategy = exact_strategy();
  strategy.microbatches = c.microbatches;
  strategy.sharding.stored = c.stored;
  strategy.optimizer.kind = UpdateRule::Kind::sgd;
  strategy.optimizer.sgd.momentum = 0.9;
  TinyJob one(model, rows, strategy, make_reference_device(), true);
  one.begin();
  one.set_evaluation(batch);
  one.executor().run(one.program().schedule_named("evaluate")).value();
  const double one_evaluated = one.get("evaluate/loss")[0];
  one.set_batch(batch);  // inputs of schedules may share offsets
  one.step();
  strategy.pipeline = c.pipeline;
  TinyMesh mesh(model, rows, strategy, Mesh::parse(c.mesh).value(), true,
                [](std::int64_t) { return make_reference_device(); });
  mesh.begin(batch);
  mesh.step();
  if (::testing::Test::HasFatalFailure()) return;
  expect_planned(mesh);
  const double worst = expect_state_of_one(mesh, one);
  mesh.begin(batch);
  mesh.on_all([&](TinyJob& job) { job.set_evaluation(batch); });
  mesh.run("evaluate");
  if (::testing::Test::HasFatalFailure()) return;
  for (std::size_t rank = 0; rank < mesh.size(); ++rank)
    EXPECT_NEAR(mesh.job(rank).get("evaluate/loss")[0], one_evaluated, 1e-12 * one_evaluated) << "rank " << rank;
  fmt::print("{:<6} {:<22} {:<5} × {} {} microbatches, worst {:.1e}\n", model.family(), c.mesh,
             name_of(c.pipeline.kind), c.pipeline.chunks_per_stage, c.microbatches, worst);
}

TEST(ShardedIsUnsharded, stages_of_decoders) {
  const Batch batch = language_batch(24, 12, 9);
  const std::vector<Case> cases{{"pipe=2", {}, 4},
                                {"pipe=4", {}, 4},
                                {"pipe=4", {.kind = Kind::gpipe}, 3},
                                {"pipe=2", {.chunks_per_stage = 2}, 4},
                                {"pipe=2", {.layers = {3, 1}}, 2},
                                {"pipe=2", {}, 1},
                                {"pipe=2 data=2", {}, 4},
                                {"data=2 pipe=2", {.chunks_per_stage = 2}, 2},
                                {"pipe=2 fsdp=2", {}, 3},
                                {"fsdp=2 pipe=2", {.kind = Kind::gpipe}, 2, Stored::state},
                                {"pipe=2 model=2", {}, 4},
                                {"pipe=2 fsdp=2 model=2", {.chunks_per_stage = 2}, 2},
                                {"data=2 fsdp=2 pipe=2", {}, 2, Stored::gradients}};
  DecoderSpec families[] = {divisible(tiny_gpt()), divisible(tiny_llama())};
  for (std::size_t f = 0; f < std::size(families); ++f) {
    families[f].layers = 4;
    const auto model = make_decoder(families[f]);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      if (is_tried({f, c})) expect_unstaged(*model, batch, 24, cases[c]);
    }
  }
}

TEST(ShardedIsUnsharded, stages_of_rows_cut_along_their_tokens) {
  const Batch batch = language_batch(12, 12, 9);
  DecoderSpec families[] = {divisible(tiny_gpt()), divisible(tiny_llama())};
  for (DecoderSpec& family : families) {
    family.layers = 4;
    const auto model = make_decoder(family);
    expect_unstaged(*model, batch, 12, {"pipe=2 context=3", {}, 2});
    expect_unstaged(*model, batch, 12, {"context=3 pipe=2", {.chunks_per_stage = 2}, 2});
  }
}

// Steps of rows of two lengths (data.buckets), one after the other on one state.
void expect_lengths_unstaged(const Model& model, const Case& c) {
  constexpr std::int64_t kRows = 8, kShort = 3, kShortRows = kRows * (kSequenceLength / kShort);
  SCOPED_TRACE(fmt::format("{} on {}, {} with {} chunks a stage", model.family(), c.mesh, name_of(c.pipeline.kind),
                           c.pipeline.chunks_per_stage));
  Strategy strategy = exact_strategy();
  strategy.microbatches = c.microbatches;
  strategy.sharding.stored = c.stored;
  strategy.optimizer.kind = UpdateRule::Kind::sgd;
  strategy.optimizer.sgd.momentum = 0.9;
  TinyJob one(model, kRows, strategy, make_reference_device(), true, {.mesh = {}, .lengths = {kShort}});
  strategy.pipeline = c.pipeline;
  TinyMesh mesh(model, kRows, strategy, Mesh::parse(c.mesh).value(), true,
                [](std::int64_t) { return make_reference_device(); }, false, {kShort});
  const std::string train = train_schedule(kShort), prefix = shape_prefix(kShort);
  const auto step_short = [&](TinyJob& job) {
    job.begin();
    job.set_batch(language_batch(kShortRows, 12, 4, kShort), prefix);
    job.step(1e-2, train);
  };
  step_short(one);
  mesh.on_all(step_short);
  if (::testing::Test::HasFatalFailure()) return;
  expect_planned(mesh, 1, train);
  expect_state_of_one(mesh, one);
  const auto step_long = [&](TinyJob& job) {
    job.set_batch(language_batch(kRows, 12, 9));
    job.step();
  };
  step_long(one);
  mesh.on_all(step_long);
  if (::testing::Test::HasFatalFailure()) return;
  expect_state_of_one(mesh, one);
}

TEST(ShardedIsUnsharded, stages_of_rows_of_two_lengths) {
  DecoderSpec tied = divisible(tiny_gpt()), mixture = divisible_mixture();
  tied.layers = mixture.layers = 4;
  const auto gpt = make_decoder(tied), experts = make_decoder(mixture);
  expect_lengths_unstaged(*gpt, {"pipe=2", {}, 4});
  expect_lengths_unstaged(*gpt, {"fsdp=2 pipe=2", {.chunks_per_stage = 2}, 2, Stored::gradients});
  expect_lengths_unstaged(*gpt, {"pipe=4", {.kind = Kind::gpipe}, 2});
  expect_lengths_unstaged(*experts, {"pipe=2 expert=2", {}, 2});
}

// A router's balance loss is passed from stage to stage, and its gradient back.
TEST(ShardedIsUnsharded, stages_of_mixtures) {
  const Batch batch = language_batch(24, 12, 9);
  const std::vector<Case> cases{{"pipe=2", {}, 2},
                                {"pipe=2 expert=2", {.chunks_per_stage = 2}, 2},
                                {"pipe=2 expert=3", {.kind = Kind::gpipe}, 2},
                                {"fsdp=2 expert=2 pipe=2", {}, 2, Stored::gradients}};
  DecoderSpec config = divisible_mixture();
  config.layers = 4;
  DecoderSpec interleaved = config;
  interleaved.layers = 8;
  interleaved.moe.every = 2;
  interleaved.moe.dense_mlp = 12;
  for (const DecoderSpec& mixture : {config, interleaved}) {
    const auto model = make_decoder(mixture);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      if (is_tried({c})) expect_unstaged(*model, batch, 24, cases[c]);
    }
  }
}

}  // namespace
}  // namespace systole::laws
