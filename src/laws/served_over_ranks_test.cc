// A model that is cut over ranks answers with the bits of the whole one, on the cpu backend as models are served: no sum
// is cut (describe/partition/serving_layouts.h). And each rank's engine does what its Program plans, bytes sent too.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "describe/models/decoder/decoder.h"
#include "describe/partition/serving_layouts.h"
#include "describe/program/collectives_of.h"
#include "execute/backends/cpu/cpu.h"
#include "execute/backends/reference/reference.h"
#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"
#include "execute/runtime/initialize.h"
#include "execute/runtime/testing/expect_planned_work.h"
#include "execute/serve/engine.h"
#include "execute/serve/int8_loader.h"
#include "execute/serve/rank_steps.h"
#include "execute/weights/lora_adapter.h"

namespace systole {
namespace {

DecoderSpec llama() {
  DecoderSpec spec;
  spec.family = DecoderSpec::Family::llama;
  spec.layers = 2;
  spec.width = 72;
  spec.heads = 8;
  spec.kv_heads = 4;
  spec.head = 18;
  spec.mlp = 600;  // more than one range of a sum (kernels/gemm.h)
  spec.gated = true;
  spec.norm = Norm::rms;
  spec.activation = Activation::silu;
  spec.position = Position::rotary;
  spec.bias = false;
  spec.qk_norm = true;
  spec.vocabulary = 92;
  spec.context = 48;
  return spec;
}

DecoderSpec gpt() {
  DecoderSpec spec;
  spec.layers = 2;
  spec.width = 64;
  spec.heads = 4;
  spec.mlp = 200;
  spec.vocabulary = 91;  // does not divide: whole on every rank
  spec.context = 48;
  return spec;
}

// Of matrices in whole groups and panels of int4, on four ranks too.
DecoderSpec grouped() {
  DecoderSpec spec = llama();
  spec.width = 128;
  spec.head = 16;
  spec.mlp = 192;
  return spec;
}

constexpr std::int64_t kRank = 17;

ServedAdapters adapters(const DecoderSpec& spec) {
  ServedAdapters served{2, kRank, {"attn.k", "attn.o", "attn.q", "attn.v", "mlp.down", "mlp.up"}};
  if (spec.gated) served.projections.emplace_back("mlp.gate");
  return served;
}

// The first of rank 3, in the last layer alone; whole, as each rank reads them.
std::vector<LoraAdapter> adapters_for(const Program& program) {
  std::vector<LoraAdapter> all(2);
  double at = 0;
  const auto numbers = [&at](std::int64_t count) {
    std::vector<float> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(static_cast<float>(0.1 * std::sin(1.3 * ++at)));
    return made;
  };
  for (const ProgramValue& a : program.values) {
    if (!is_served_adapter(a.name) || a.name.ends_with(".b")) continue;
    const std::string projection = a.name.substr(5, a.name.size() - 7);  // "lora.attn.q.a"
    const ProgramValue& b = program.values[static_cast<std::size_t>(program.value_named(adapter_b(projection)))];
    const std::int64_t in = a.type.size(3), out = b.parameter->type.size(3);
    for (const auto& [k, layer, rank] : {std::tuple(0, 1, 3L), std::tuple(1, 0, kRank), std::tuple(1, 1, kRank)})
      all[static_cast<std::size_t>(k)].projections[projection][layer] = {rank, numbers(rank * in), numbers(rank * out)};
  }
  return all;
}

Status load_weights(Engine& engine, const Model& model, std::int64_t part, std::uint64_t seed) {
  const LoadSome parts = [part, seed](Executor& executor) { return initialize(executor, seed, part); };
  if (!is_packed_type(engine.options().parameter)) return parts(engine.executor());
  const std::unique_ptr<Device> host = make_reference_device();
  return load_int8(engine, model, DType::f32, parts, *host);
}

Status load(Engine& engine, const Model& model, std::int64_t part, std::uint64_t seed = 5) {
  TRY(load_weights(engine, model, part, seed));
  if (!engine.options().adapters.any()) return {};
  return write_adapters(engine.executor(), adapters_for(engine.program()), part);
}

// The ranks of a model, as threads; rank 0's engine is the test's.
class Ranks {
 public:
  Ranks(const Model& model, EngineOptions options, std::int64_t parts, Seconds patience = Seconds(20.0)) {
    options.parts = parts;
    auto transports = loopback(static_cast<std::int32_t>(parts), {.patience = patience}).value();
    for (std::int64_t part = 0; part < parts; ++part) {
      Rank& rank = ranks_.emplace_back();
      CpuOptions cpu;
      cpu.threads = 1;
      cpu.exact = true;
      rank.device = make_cpu_device(cpu).value();
      rank.transport = std::move(transports[static_cast<std::size_t>(part)]);
      rank.communicator = make_communicator(*rank.transport, serving_mesh(parts)).value();
      rank.device->connect(rank.communicator.get());
      rank.engine = Engine::create(model, *rank.device, options, part).value();
      load(*rank.engine, model, part).value();
    }
    for (std::size_t part = 1; part < ranks_.size(); ++part)
      threads_.emplace_back([this, &model, part, &rank = ranks_[part]] {
        const auto others = [&](const RankedWeights& weights) -> Status {
          std::this_thread::sleep_for(longest_load_.load());
          if (weights.step == kGone) return error(ErrorKind::not_found, "there is no step {}", kGone);
          return load(*rank.engine, model, static_cast<std::int64_t>(part), static_cast<std::uint64_t>(weights.step));
        };
        rank.ended = follow_steps(
            rank.engine->executor(), *rank.communicator, [this] { return stays_.load(); }, others);
      });
    if (parts == 1) return;
    steps_.emplace(*ranks_[0].communicator, Seconds(0.01));
    ranks_[0].engine->lead(&*steps_);
  }
  ~Ranks() { end(); }
  // Of ranks 1 and up.
  std::vector<Status> end() {
    steps_.reset();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::vector<Status> ended;
    for (std::size_t part = 1; part < ranks_.size(); ++part) ended.push_back(ranks_[part].ended);
    return ended;
  }
  Engine& engine(std::size_t part = 0) { return *ranks_[part].engine; }
  LeadingSteps& steps() { return *steps_; }
  void leave() { stays_ = false; }
  // Weights of another seed; kGone: no rank but 0 has them.
  static constexpr std::int64_t kGone = 404;
  Status reload(const Model& model, std::int64_t seed, std::chrono::milliseconds longest = {}) {
    longest_load_ = longest;
    return steps_->load({seed, 0}, [&] { return load(engine(), model, 0, static_cast<std::uint64_t>(seed)); });
  }

 private:
  struct Rank {
    std::unique_ptr<Device> device;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<Engine> engine;
    Status ended;
  };
  std::vector<Rank> ranks_;
  std::atomic<bool> stays_ = true;
  std::atomic<std::chrono::milliseconds> longest_load_ = std::chrono::milliseconds(0);
  std::optional<LeadingSteps> steps_;
  std::vector<std::thread> threads_;
};

std::vector<float> logits_of(const Engine& engine, std::int64_t slot) {
  return {engine.logits(slot).begin(), engine.logits(slot).end()};
}

// Logits after prompts of several lengths, and after each of four tokens of three sequences.
std::vector<std::vector<float>> answers_of(Engine& engine) {
  std::vector<std::vector<float>> seen;
  std::vector<std::int32_t> prompt;
  for (std::int32_t i = 0; i < 37; ++i) prompt.push_back((i * 29 + 3) % 90);
  for (const std::int64_t slot : {0, 1, 2}) {
    engine.set_adapter(slot, std::min(slot, engine.options().adapters.count));
    engine.prefill(slot, std::span(prompt).first(static_cast<std::size_t>(5 + 16 * slot))).value();
    seen.push_back(logits_of(engine, slot));
  }
  for (std::int32_t step = 0; step < 4; ++step) {
    engine.decode(std::vector<Engine::Next>{{0, step * 17}, {1, step + 40}, {2, 3 * step}}).value();
    for (const std::int64_t slot : {0, 1, 2}) seen.push_back(logits_of(engine, slot));
  }
  return seen;
}

struct Kept {
  const char* name;
  DecoderSpec (*spec)();
  DType parameter, cache;
  bool adapted = false;  // each sequence by another adapter, and one without
};

class ServedOverRanks : public testing::TestWithParam<Kept> {
 protected:
  const std::unique_ptr<const Model> model_ = make_decoder(GetParam().spec());
  const EngineOptions options_{.slots = 3,
                               .parameter = GetParam().parameter,
                               .cache_type = GetParam().cache,
                               .adapters = GetParam().adapted ? adapters(GetParam().spec()) : ServedAdapters()};
};

TEST_P(ServedOverRanks, answers_have_the_bits_of_one_rank) {
  const std::vector<std::vector<float>> whole = answers_of(Ranks(*model_, options_, 1).engine());
  EXPECT_FALSE(whole.at(1) == whole.at(2)) << "all logits are alike";
  if (GetParam().adapted) {
    const std::vector<std::vector<float>> plain = answers_of(
        Ranks(*model_, {.slots = 3, .parameter = GetParam().parameter, .cache_type = GetParam().cache}, 1).engine());
    EXPECT_TRUE(plain.at(0) == whole.at(0)) << "slot 0 has no adapter";
    for (const std::size_t slot : {1, 2}) EXPECT_FALSE(plain.at(slot) == whole.at(slot)) << "adapters change nothing";
  }
  for (const std::int64_t parts : {2, 4}) {
    Ranks ranks(*model_, options_, parts);
    EXPECT_TRUE(answers_of(ranks.engine()) == whole) << parts << " ranks";
    for (const Status& ended : ranks.end()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  }
}

TEST_P(ServedOverRanks, a_rank_has_its_part_of_weights_and_cache) {
  Ranks whole(*model_, options_, 1);
  const MemoryByOwner all = memory_by_owner(whole.engine().program());
  Ranks ranks(*model_, options_, 4);
  const MemoryByOwner part = memory_by_owner(ranks.engine(3).program());
  EXPECT_EQ(part[Residence::cache] * 4.0, all[Residence::cache]);
  // Norms, positions and an adapter's A are whole, and beside packed weights they are in f32.
  if (GetParam().adapted) return;
  EXPECT_LT(part[Residence::parameter] * (is_packed_type(GetParam().parameter) ? 2.0 : 3.0), all[Residence::parameter]);
}

// What an adapter adds of x it reads where the product of its projection has gathered it.
TEST_P(ServedOverRanks, adapters_send_nothing_between_ranks) {
  if (!GetParam().adapted) return;
  const auto device = make_cpu_device({}).value();
  const auto planned = [&](const ServedAdapters& served) {
    EngineOptions options = options_;
    options.adapters = served;
    options.parts = 2;
    return engine_program(*model_, options, device->target(), nullptr);
  };
  const Program with = planned(options_.adapters), without = planned({});
  for (std::size_t f = 0; f < with.functions.size(); ++f) {
    const Function &one = with.functions[f], &other = without.functions[f];
    EXPECT_EQ(collectives_of(one.graph).size(), collectives_of(other.graph).size()) << one.name;
    EXPECT_EQ(bytes_sent(with, one, 1), bytes_sent(without, other, 1)) << one.name;
  }
  for (const ProgramValue& value : with.values) {
    if (!is_served_adapter(value.name)) continue;
    const std::int64_t parts = value.name.ends_with(".b") ? 2 : 1;
    EXPECT_EQ(value.type.size(3) * parts, value.parameter->type.size(3)) << value.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    In, ServedOverRanks,
    testing::Values(Kept{"llama", llama, DType::f32, DType::f32}, Kept{"llama_bf16", llama, DType::bf16, DType::bf16},
                    Kept{"gpt", gpt, DType::f32, DType::f32}, Kept{"llama_int8", llama, DType::i8, DType::bf16},
                    Kept{"gpt_int8", gpt, DType::i8, DType::f32}, Kept{"llama_int4", grouped, kInt4, DType::f32},
                    Kept{"llama_adapted", llama, DType::f32, DType::f32, true},
                    Kept{"llama_bf16_adapted", llama, DType::bf16, DType::bf16, true},
                    Kept{"gpt_bf16_adapted", gpt, DType::bf16, DType::f32, true},
                    Kept{"llama_int8_adapted", llama, DType::i8, DType::bf16, true},
                    Kept{"llama_int4_adapted", grouped, kInt4, DType::f32, true}),
    [](const auto& param) { return std::string(param.param.name); });

void expect_plan_is_run(DecoderSpec (*spec)(), DType parameter, const ServedAdapters& served = {}) {
  const auto model = make_decoder(spec());
  Ranks ranks(*model, {.slots = 3, .parameter = parameter, .adapters = served}, 2);
  answers_of(ranks.engine());
  for (const std::size_t rank : {0, 1}) {
    const Program& program = ranks.engine(rank).program();
    if (rank == 1) ranks.end();  // its counts stand still
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
      const Function& function = program.functions[f];
      SCOPED_TRACE(fmt::format("rank {}, {}", rank, function.name));
      const std::int64_t times = function.name == "prefill.16"   ? 1
                                 : function.name == "prefill.48" ? 2
                                 : function.name == "decode.3"   ? 4
                                                                 : 0;
      const WorkCounters& counted = ranks.engine(rank).executor().counters()[f];
      expect_planned_work(function.work * times, counted);
      const std::int64_t sent = bytes_sent(program, function, static_cast<std::int64_t>(rank)).count();
      EXPECT_GT(sent, 0);
      EXPECT_EQ(counted.bytes_sent, sent * times);
    }
  }
}

TEST(ServedOverRanks, PlanIsRun_of_each_rank) {
  expect_plan_is_run(llama, DType::f32);
  expect_plan_is_run(llama, DType::i8);
  expect_plan_is_run(grouped, kInt4);
  expect_plan_is_run(llama, DType::f32, adapters(llama()));
}

TEST(ServedOverRanks, a_rank_that_leaves_ends_all_with_its_reason) {
  const auto model = make_decoder(llama());
  Ranks ranks(*model, {.slots = 3}, 4);
  answers_of(ranks.engine());
  ranks.leave();
  while (!ranks.steps().failure()) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // found by a beat
  EXPECT_NE(ranks.steps().failure()->message.find("it was asked to stop"), std::string::npos)
      << ranks.steps().failure()->message;
  const Status refused = ranks.engine().prefill(0, std::vector<std::int32_t>{1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, ranks.steps().failure()->message);
}

TEST(ServedOverRanks, all_load_other_weights_together_or_say_who_has_not) {
  const auto model = make_decoder(llama());
  const EngineOptions options{.slots = 3, .parameter = DType::i8};
  Ranks whole(*model, options, 1);
  const std::vector<std::vector<float>> before = answers_of(whole.engine());
  load(whole.engine(), *model, 0, 6).value();
  const std::vector<std::vector<float>> after = answers_of(whole.engine());
  EXPECT_FALSE(before == after);

  Ranks ranks(*model, options, 2);
  EXPECT_TRUE(answers_of(ranks.engine()) == before);
  const Status gone = ranks.reload(*model, Ranks::kGone);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().message, "rank 1: there is no step 404");
  EXPECT_FALSE(ranks.steps().failure()) << "the ranks go on";
  EXPECT_TRUE(ranks.reload(*model, 6).ok());
  EXPECT_TRUE(answers_of(ranks.engine()) == after);
  EXPECT_TRUE(ranks.reload(*model, 5).ok());
  EXPECT_TRUE(answers_of(ranks.engine()) == before);
}

// A rank reads for longer than a collective waits.
TEST(ServedOverRanks, a_long_load_is_waited_for) {
  const auto model = make_decoder(llama());
  Ranks ranks(*model, {.slots = 3}, 2, Seconds(0.7));
  const Status loaded = ranks.reload(*model, 6, std::chrono::milliseconds(1200));
  EXPECT_TRUE(loaded.ok()) << to_string(loaded.error());
  for (const Status& ended : ranks.end()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
}

TEST(ServedOverRanks, heads_that_do_not_divide_are_refused) {
  const auto model = make_decoder(llama());
  CpuOptions cpu;
  const auto device = make_cpu_device(cpu).value();
  const auto refused = Engine::create(*model, *device, {.parts = 3});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("4 heads of keys and values"), std::string::npos) << refused.error().message;
}

TEST(ServedOverRanks, panels_of_int4_are_not_cut) {
  DecoderSpec spec = grouped();
  spec.head = 8;  // four of keys: 32 outputs
  const auto model = make_decoder(spec);
  const auto device = make_cpu_device({}).value();
  const auto refusal = [&](DType parameter, std::int64_t parts) -> std::string {
    try {
      (void)engine_program(*model, {.parameter = parameter, .parts = parts}, device->target(), nullptr);
      return "";
    } catch (const Failure& refused) { return refused.error().message; }
  };
  EXPECT_EQ(refusal(kInt4, 2), "");
  EXPECT_EQ(refusal(kInt4, 4),
            "'blocks.{layer}.attn.k' in int4 has 8 outputs on each of 4 devices, which cuts a panel of 16");
  EXPECT_EQ(refusal(DType::i8, 4), "");
}

}  // namespace
}  // namespace systole
