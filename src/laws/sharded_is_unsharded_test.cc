// sharded-is-unsharded: a step on any mesh, with ranks as threads, gives the loss, norm, moments and parameters of the
// step on one device, in f64 to 1e-12; and each rank computes, moves and sends exactly what its Program states, as
// integers. SYSTOLE_TEST_LONG=1 tries each mesh with each family, otherwise with one.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "describe/ir/rewrite.h"
#include "describe/ir/text.h"
#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"

namespace systole::laws {
namespace {

struct Case {
  const char* mesh;
  ShardingStrategy::Stored stored;
  int microbatches = 1;
  UpdateRule::Kind optimizer = UpdateRule::Kind::sgd;
};

// A gradient that is zero except for rounding (a key's bias, to which softmax is invariant) changes its parameter,
// under AdamW, by the rate times rounding / eps = 1e-2 * 1e-16 / 1e-8.
double tolerance(const Case& c, const ProgramValue& value) {
  return c.optimizer == UpdateRule::Kind::adamw && value.residence == Residence::parameter ? 1e-10 : 1e-12;
}

std::int64_t flops_of(TinyJob& job) {
  std::int64_t flops = 0;
  for (const WorkCounters& counted : job.executor().counters()) flops += counted.flops + counted.skipped_flops;
  return flops;
}

// Results are equal, too, if every device does everything. So: parameters lie in parts along the axes that shard dims
// of the model, and all devices together compute less than twice what one computes alone, which is less than if an axis
// of two or more devices were left out.
void expect_in_parts(TinyMesh& mesh, TinyJob& one) {
  const Program& program = mesh.program();
  for (std::size_t a = 0; a < program.mesh.axes().size(); ++a) {
    const std::string& axis = program.mesh.axes()[a].name;
    if (axis != "model" && axis != "expert") continue;
    std::int64_t in_parts = 0;
    for (const ProgramValue& value : program.values)
      in_parts += value.residence == Residence::parameter && value.cut && value.cut->layout.at[a] >= 0 ? 1 : 0;
    EXPECT_GT(in_parts, 0) << "no parameter lies in parts along " << axis;
  }
  std::int64_t all = 0;
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) all += flops_of(mesh.job(rank));
  EXPECT_LT(all, 2 * flops_of(one));
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
  TinyMesh mesh(model, rows, strategy, Mesh::parse(c.mesh).value(), dropout,
                [](std::int64_t) { return make_reference_device(); });
  const double worst =
      expect_step_of_one(mesh, one, batch, [&](const ProgramValue& value) { return tolerance(c, value); });
  expect_in_parts(mesh, one);
  fmt::print("{:<6} {:<22} {:<11} {} microbatches, {:<6} worst {:.4f} of its tolerance\n", model.family(), c.mesh,
             name_of(c.stored), c.microbatches, c.optimizer == UpdateRule::Kind::adamw ? "adamw:" : "sgd:", worst);
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
  const DecoderSpec families[] = {divisible(tiny_gpt()), divisible(tiny_llama())};
  for (std::size_t f = 0; f < std::size(families); ++f) {
    const auto model = make_decoder(families[f]);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      if (is_tried({f, c})) expect_unsharded(*model, batch, 12, cases[c], true);
    }
  }
}

// Experts are sharded along an axis that shards rows for everything else; some tokens are dropped.
TEST(ShardedIsUnsharded, mixtures_over_their_axis) {
  using Stored = ShardingStrategy::Stored;
  const Batch batch = language_batch(12, 12, 9);
  const std::vector<Case> cases{{"expert=2", Stored::parameters, 1},
                                {"expert=3", Stored::parameters, 2},
                                {"data=2 expert=2", Stored::parameters, 1},
                                {"expert=2 data=2", Stored::parameters, 3},
                                {"fsdp=2 expert=2", Stored::parameters, 1},
                                {"fsdp=2 expert=2", Stored::gradients, 3},
                                {"expert=2 fsdp=2", Stored::state, 1, UpdateRule::Kind::adamw},
                                {"expert=2 model=2", Stored::parameters, 2},
                                {"data=2 fsdp=2", Stored::parameters, 1},
                                {"fsdp=2 expert=2 model=2", Stored::parameters, 1}};
  const auto model = make_decoder(divisible_mixture());
  TinyJob one(*model, 12, exact_strategy(), make_reference_device(), true);
  one.begin();
  one.set_batch(batch);
  one.step();
  EXPECT_GT(one.sum(kDroppedChoices), 0);
  EXPECT_GT(one.sum(kExpertChoices), one.sum(kDroppedChoices));
  for (std::size_t c = 0; c < cases.size(); ++c) {
    if (is_tried({c / 2})) expect_unsharded(*model, batch, 12, cases[c], true);
  }
}

// The same with experts only in every second layer.
TEST(ShardedIsUnsharded, experts_in_every_second_layer) {
  using Stored = ShardingStrategy::Stored;
  const Batch batch = language_batch(12, 12, 9);
  const std::vector<Case> cases{{"expert=2", Stored::parameters, 1},
                                {"data=2 expert=3", Stored::parameters, 1},
                                {"fsdp=2 expert=2", Stored::gradients, 3},
                                {"expert=2 model=2", Stored::parameters, 2}};
  DecoderSpec config = divisible_mixture();
  config.layers = 4;
  config.moe.every = 2;
  config.moe.dense_mlp = 12;
  const auto model = make_decoder(config);
  for (std::size_t c = 0; c < cases.size(); ++c) {
    if (is_tried({c})) expect_unsharded(*model, batch, 12, cases[c], true);
  }
}

using NamedBits = std::vector<std::pair<std::string, std::vector<std::byte>>>;

std::vector<std::string> different(const NamedBits& a, const NamedBits& b) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size() || a[i] != b[i]) names.push_back(i < a.size() ? a[i].first : b[i].first);
  }
  return names;
}

NamedBits bits_after(const Model& model, const Batch& batch, Strategy strategy, const char* mesh_text, bool overlap,
                     std::int64_t& begun) {
  strategy.overlap = overlap;
  TinyMesh mesh(model, 12, strategy, Mesh::parse(mesh_text).value(), true,
                [](std::int64_t) { return make_reference_device(); });
  mesh.begin(batch);
  for (int step = 0; step < 2; ++step) mesh.step();
  NamedBits bits;
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) {
    const Program& program = mesh.job(rank).program();
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      const Residence residence = program.values[v].residence;
      if (residence != Residence::parameter && residence != Residence::state && residence != Residence::output)
        continue;
      if (program.values[v].name.starts_with("evaluate/")) continue;  // not in this schedule
      const std::span<std::byte> seen = mesh.job(rank).executor().view(static_cast<int>(v), 0);
      bits.push_back({fmt::format("{} of rank {}", program.values[v].name, rank), {seen.begin(), seen.end()}});
    }
    const Schedule& train = program.schedule_named("train");
    std::int64_t sent = 0;
    for (const WorkCounters& counted : mesh.job(rank).executor().counters()) sent += counted.bytes_sent;
    EXPECT_EQ(sent, 2 * bytes_sent(program, train, static_cast<std::int64_t>(rank)).count());
  }
  begun = 0;
  for (const Function& function : mesh.program().functions) {
    const std::string text = to_text(function.graph);
    for (std::size_t at = 0; (at = text.find("overlap=", at)) != text.npos; ++at) ++begun;
  }
  return bits;
}

// Overlapped collectives change the timing, not the results.
TEST(ShardedIsUnsharded, overlap_changes_no_bit) {
  using Stored = ShardingStrategy::Stored;
  const Batch batch = language_batch(12, 12, 9);
  const std::vector<Case> cases{{"data=2", Stored::parameters, 1},
                                {"fsdp=2", Stored::state, 2},
                                {"fsdp=2", Stored::parameters, 1},
                                {"fsdp=3", Stored::parameters, 2},
                                {"data=2 fsdp=2", Stored::parameters, 3},
                                {"fsdp=2 model=2", Stored::parameters, 1},
                                {"data=2 fsdp=2 model=2", Stored::parameters, 1}};
  DecoderSpec families[] = {divisible(tiny_gpt()), divisible(tiny_llama())};
  for (const bool bf16 : {false, true}) {
    for (std::size_t f = 0; f < std::size(families); ++f) {
      families[f].layers = 3;
      const auto model = make_decoder(families[f]);
      for (std::size_t n = 0; n < (bf16 ? 3 : cases.size()); ++n) {
        if (!is_tried({f, n, bf16 ? 1U : 0U})) continue;
        const Case& c = cases[n];
        SCOPED_TRACE(fmt::format("{} on {}, {}", model->family(), c.mesh, bf16 ? "bf16" : "f64"));
        Strategy strategy = bf16 ? bf16_strategy() : exact_strategy();
        strategy.microbatches = c.microbatches;
        strategy.sharding.stored = c.stored;
        std::int64_t with = 0, without = 0;
        const auto bits = bits_after(*model, batch, strategy, c.mesh, true, with);
        EXPECT_EQ(different(bits, bits_after(*model, batch, strategy, c.mesh, false, without)),
                  std::vector<std::string>());
        EXPECT_GT(with, 0);
        EXPECT_EQ(without, 0);
      }
    }
  }
}

// Bytes of a function's reducing collectives outside of its loops, and within.
std::pair<std::int64_t, std::int64_t> sums_sent(const Graph& graph, bool within = false) {
  std::pair<std::int64_t, std::int64_t> sent;
  for (const GraphNode& node : graph.nodes()) {
    for (const Graph& region : node.regions) {
      const auto inner = sums_sent(region, true);
      sent = {sent.first + inner.first, sent.second + inner.second};
    }
    if (is(node, "reduce_scatter")) (within ? sent.second : sent.first) += graph.type(node.operands[0]).bytes().count();
  }
  return sent;
}

// Gradients sent in bf16 are cast and reduced in the layer that computes them, like those in f32: a device never holds
// the whole gradients of all layers, and half the bytes are sent. Each of up to 3 × 2 sums is rounded to 8 bits.
TEST(ShardedIsUnsharded, gradients_in_bf16_are_summed_where_they_are_made) {
  const Batch batch = language_batch(12, 12, 9);
  const auto model = make_decoder(divisible(tiny_llama()));
  for (const int microbatches : {1, 2}) {
    SCOPED_TRACE(fmt::format("{} microbatches", microbatches));
    std::pair<std::int64_t, std::int64_t> sent[2];
    std::map<std::string, HostTensor> before, after[2];
    const auto keep = [](TinyMesh& mesh, std::map<std::string, HostTensor>& kept) {
      for (const ProgramValue& value : mesh.program().values) {
        if (value.residence == Residence::parameter) kept.insert_or_assign(value.name, mesh.whole(value.name));
      }
    };
    for (const bool narrow : {false, true}) {
      Strategy strategy = f32_strategy();
      strategy.microbatches = microbatches;
      strategy.optimizer.kind = UpdateRule::Kind::sgd;  // the update is the gradient itself
      if (narrow) strategy.precision.reduce = DType::bf16;
      TinyMesh mesh(*model, 12, strategy, Mesh::parse("fsdp=3").value(), false,
                    [](std::int64_t) { return make_reference_device(); });
      mesh.begin(batch);
      keep(mesh, before);
      mesh.step();
      keep(mesh, after[narrow]);
      expect_planned(mesh);
      for (const Function& function : mesh.program().functions) {
        const auto of_function = sums_sent(function.graph);
        sent[narrow] = {sent[narrow].first + of_function.first, sent[narrow].second + of_function.second};
      }
    }
    EXPECT_GT(sent[0].second, sent[0].first);
    EXPECT_EQ(sent[1].first * 2, sent[0].first);
    EXPECT_EQ(sent[1].second * 2, sent[0].second);
    for (const auto& [name, wide] : after[0]) {
      double moved = 0, apart = 0;
      for (std::int64_t i = 0; i < wide.size(); ++i) {
        ASSERT_TRUE(std::isfinite(wide.at(i)) && std::isfinite(after[1].at(name).at(i))) << name;
        moved = std::max(moved, std::abs(wide.at(i) - before.at(name).at(i)));
        apart = std::max(apart, std::abs(wide.at(i) - after[1].at(name).at(i)));
      }
      EXPECT_LE(apart, moved * 6 / 256) << name;
    }
  }
}

// Ranks of a TinyMesh may share one Program, because every rank builds the same.
TEST(ShardedIsUnsharded, every_rank_makes_the_same_program) {
  const auto model = make_decoder(divisible(tiny_llama()));
  for (const bool joined : {false, true}) {
    const Mesh mesh = Mesh::parse("data=2 fsdp=2 model=2").value();
    std::set<std::string> hashes;
    auto transports = loopback(8).value();
    for (const std::int64_t rank : {0, 3, 7}) {
      const auto communicator = make_communicator(*transports[static_cast<std::size_t>(rank)], mesh).value();
      std::unique_ptr<Device> device = make_reference_device();
      device->connect(communicator.get());
      const TinyJob job(*model, 12, exact_strategy(), std::move(device), true, {mesh, rank, joined});
      hashes.insert(hash_of(job.program()));
    }
    EXPECT_EQ(hashes.size(), 1U);
  }
}

TEST(ShardedIsUnsharded, a_regression_by_gradients_with_momentum) {
  MlpSpec config = tiny_mlp();
  const auto model = make_mlp(config);
  const Batch batch = regression_batch(12, 7, 3, 1);
  for (const char* mesh : {"data=4", "fsdp=4", "data=2 fsdp=2"})
    expect_unsharded(*model, batch, 12, {mesh, ShardingStrategy::Stored::parameters, 1}, false);
}

}  // namespace
}  // namespace systole::laws
