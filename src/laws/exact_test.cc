// resume-is-exact, within a process: with exact training a step's weights, moments, loss and norm have the same bits on
// any number of workers, for any axes and ZeRO stage, and on any number of threads. Each rank's Program depends on its
// number of logical shards, and computes, moves and sends what it states. SYSTOLE_TEST_LONG=1 tries all meshes.

#include <cstring>

#include "laws/tiny_mesh.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif
#include "execute/backends/reference/reference.h"

namespace systole::laws {
namespace {

using Stored = ShardingStrategy::Stored;
using Bits = std::map<std::string, std::vector<std::byte>>;  // by name

constexpr int kSteps = 3;

struct Case {
  const char* mesh;
  Stored stored = Stored::parameters;
};

std::unique_ptr<Device> device_of_rank(std::int64_t rank) {
#ifdef SYSTOLE_HAS_CPU
  CpuOptions options;
  options.threads = 1 + static_cast<int>(rank % 2);
  options.exact = true;
  return make_cpu_device(options).value();
#else
  static_cast<void>(rank);
  return make_reference_device();
#endif
}

void keep(Bits& bits, const std::string& name, const HostTensor& tensor) {
  bits[name].assign(tensor.bytes().begin(), tensor.bytes().end());
}

// State after a few steps and an evaluation.
Bits bits_on(const Model& model, const Batch& batch, std::int64_t rows, Strategy strategy, const Case& c,
             const TinyMesh::MakeDevice& make_device) {
  strategy.sharding.stored = c.stored;
  TinyMesh mesh(model, rows, strategy, Mesh::parse(c.mesh).value(), true, make_device);
  mesh.begin(batch);
  Bits bits;
  for (int step = 0; step < kSteps; ++step) {
    mesh.step();
    if (::testing::Test::HasFatalFailure()) return {};
    for (const char* name : {"loss", "norm", kExpertChoices, kDroppedChoices}) {
      if (mesh.program().find_value(name)) keep(bits, fmt::format("{} {}", name, step), mesh.job(0).tensor(name));
    }
  }
  expect_planned(mesh, kSteps);
  for (const ProgramValue& value : mesh.program().values) {
    if (value.residence != Residence::parameter && value.residence != Residence::state) continue;
    keep(bits, value.name, value.cut ? mesh.whole(value.name) : mesh.job(0).tensor(value.name));
  }
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) mesh.job(rank).set_evaluation(batch);
  mesh.run("evaluate");
  keep(bits, "evaluate/loss", mesh.job(mesh.size() - 1).tensor("evaluate/loss"));
  return bits;
}

void expect_same(const Bits& bits, const Bits& one) {
  ASSERT_EQ(bits.size(), one.size());
  for (const auto& [name, bytes] : one) EXPECT_TRUE(bits.at(name) == bytes) << name;
}

Strategy strategy_of(Strategy strategy, int microbatches) {
  strategy.logical_shards = 8;
  strategy.microbatches = microbatches;
  strategy.optimizer.kind = UpdateRule::Kind::adamw;
  return strategy;
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> kCases{{"data=2"},
                                        {"data=3"},
                                        {"data=4"},
                                        {"data=5"},
                                        {"data=6"},
                                        {"data=7"},
                                        {"data=8"},
                                        {"fsdp=2", Stored::nothing},
                                        {"fsdp=3", Stored::state},
                                        {"fsdp=3", Stored::parameters},
                                        {"fsdp=4", Stored::gradients},
                                        {"fsdp=5", Stored::parameters},
                                        {"fsdp=8", Stored::parameters},
                                        {"data=2 fsdp=2", Stored::parameters},
                                        {"data=2 fsdp=3", Stored::state},
                                        {"data=3 fsdp=2", Stored::parameters}};
  return kCases;
}

TEST(ExactOnRanks, any_workers_give_the_bits_of_one) {
  const Batch batch = language_batch(16, 11, 9);
  DecoderSpec config = tiny_gpt();
  config.dropout = 0.25;
  const auto model = make_decoder(config);
  for (const auto& [name, strategy] : {std::pair("f32", f32_strategy()), std::pair("bf16", bf16_strategy())}) {
    const Strategy exact = strategy_of(strategy, 1);
    const Bits one = bits_on(*model, batch, 16, exact, {"data=1"}, device_of_rank);
    const bool bf16 = strategy.precision.compute == DType::bf16;
    for (std::size_t i = 0; i < all_cases().size(); ++i) {
      const Case& c = all_cases()[i];
      if (!is_tried({i, bf16 ? 7U : 2U}, 8)) continue;  // data=8 and both axes; with bf16 data=3 and fsdp=3
      SCOPED_TRACE(fmt::format("{} on {}, {} stored in parts", name, c.mesh, name_of(c.stored)));
      expect_same(bits_on(*model, batch, 16, exact, c, device_of_rank), one);
    }
  }
}

TEST(ExactOnRanks, llama_with_microbatches_within_a_shard) {
  const Batch batch = language_batch(32, 11, 4);
  const auto model = make_decoder(tiny_llama());
  const Strategy exact = strategy_of(f32_strategy(), 2);
  const Bits one = bits_on(*model, batch, 32, exact, {"data=1"}, device_of_rank);
  const Case cases[] = {{"data=3"}, {"fsdp=3"}, {"data=5"}, {"fsdp=7", Stored::gradients}};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    if (!is_tried({i / 2})) continue;  // workers with 3, 3 and 2 shards, along either axis
    const Case& c = cases[i];
    SCOPED_TRACE(fmt::format("{}, {} stored in parts", c.mesh, name_of(c.stored)));
    expect_same(bits_on(*model, batch, 32, exact, c, device_of_rank), one);
  }
}

// Steps of rows of two lengths (data.buckets) alternate, on one state. The order of the steps is the same for all.
Bits bits_of_lengths(const Model& model, Strategy strategy, const Case& c) {
  constexpr std::int64_t kShort = 3, kRows = 16, kShortRows = kRows * (kSequenceLength / kShort);
  const std::string train = train_schedule(kShort), prefix = shape_prefix(kShort);
  strategy.sharding.stored = c.stored;
  TinyMesh mesh(model, kRows, strategy, Mesh::parse(c.mesh).value(), true, device_of_rank, false, {kShort});
  Bits bits;
  mesh.on_all([](TinyJob& job) { job.begin(); });
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    mesh.on_all([&](TinyJob& job) {
      job.set_batch(language_batch(kShortRows, 11, 20 + step, kShort), prefix);
      job.step(1e-2, train);
    });
    if (::testing::Test::HasFatalFailure()) return {};
    keep(bits, fmt::format("short loss {}", step), mesh.job(0).tensor("loss"));
    mesh.on_all([&](TinyJob& job) {
      job.set_batch(language_batch(kRows, 11, 30 + step));
      job.step();
    });
    if (::testing::Test::HasFatalFailure()) return {};
    keep(bits, fmt::format("loss {}", step), mesh.job(0).tensor("loss"));
  }
  for (const ProgramValue& value : mesh.program().values) {
    if (value.residence != Residence::parameter && value.residence != Residence::state) continue;
    keep(bits, value.name, value.cut ? mesh.whole(value.name) : mesh.job(0).tensor(value.name));
  }
  return bits;
}

TEST(ExactOnRanks, steps_of_rows_of_two_lengths) {
  DecoderSpec config = tiny_gpt();
  config.dropout = 0.25;
  const auto model = make_decoder(config);
  const Strategy exact = strategy_of(f32_strategy(), 2);
  expect_same(bits_of_lengths(*model, exact, {"fsdp=3"}), bits_of_lengths(*model, exact, {"data=1"}));
}

// Expert choices and dropped tokens are also counted over all shards.
TEST(ExactOnRanks, experts_on_whole_shards) {
  const Batch batch = language_batch(16, 11, 4);
  const auto model = make_decoder(tiny_mixture());
  const Strategy exact = strategy_of(f32_strategy(), 1);
  const Bits one = bits_on(*model, batch, 16, exact, {"data=1"}, device_of_rank);
  EXPECT_TRUE(one.contains("moe.dropped 0"));
  for (const Case& c : {Case{"data=3"}, Case{"fsdp=2"}}) {
    SCOPED_TRACE(c.mesh);
    expect_same(bits_on(*model, batch, 16, exact, c, device_of_rank), one);
  }
  expect_same(bits_of_lengths(*model, exact, {"data=3"}), bits_of_lengths(*model, exact, {"data=1"}));
}

TEST(ExactOnRanks, the_reference_too_and_near_what_is_not_exact) {
  const Batch batch = language_batch(8, 11, 2);
  const auto model = make_decoder(tiny_gpt());
  const auto reference = [](std::int64_t) { return make_reference_device(); };
  Strategy exact = strategy_of(exact_strategy(), 1);
  exact.optimizer.kind = UpdateRule::Kind::sgd;
  const Bits one = bits_on(*model, batch, 8, exact, {"data=1"}, reference);
  expect_same(bits_on(*model, batch, 8, exact, {"fsdp=3"}, reference), one);
  Strategy plain = exact;
  plain.logical_shards = 0;
  TinyMesh usual(*model, 8, plain, Mesh(), true, reference);
  usual.begin(batch);
  usual.step();
  double loss = 0;
  std::memcpy(&loss, one.at("loss 0").data(), sizeof loss);
  EXPECT_NEAR(loss, usual.job(0).loss(), 1e-12 * loss);
}

TEST(ExactOnRanks, what_cannot_be_is_refused_with_a_reason) {
  const auto model = make_decoder(tiny_gpt());
  const Strategy exact = strategy_of(f32_strategy(), 1);
  const auto said = [&](const char* mesh) {
    try {
      TinyMesh made(*model, 16, exact, Mesh::parse(mesh).value(), false, device_of_rank);
    } catch (const Failure& failure) { return to_string(failure.error()); }
    return std::string("nothing");
  };
  EXPECT_NE(said("data=2 model=2").find("an axis 'model'"), std::string::npos) << said("data=2 model=2");
  EXPECT_NE(said("data=9").find("9 devices for 8 logical shards"), std::string::npos) << said("data=9");
}

}  // namespace
}  // namespace systole::laws
