// Times of the serving Program on machines with round numbers, and its memory.

#include "predict/serving/step_times.h"

#include <gtest/gtest.h>

#include "describe/models/list.h"
#include "describe/spec/workload.h"

namespace systole {
namespace {

constexpr std::int64_t kLayers = 4, kWidth = 512, kKvHeads = 4, kHead = 64, kVocabulary = 1000, kContext = 256;

std::unique_ptr<const Model> small_model() {
  const char* text = R"(systole: 1
name: chat
workload: serve
model: { family: llama, layers: 4, width: 512, heads: 8, kv_heads: 4, mlp: 1024, context: 256, vocabulary: 1000 }
serve: { traffic: { rate: 1 } }
)";
  return make_model(read_workload(text, "job.yaml").value().model);
}

Bytes no_workspace(const Graph&, const GraphNode&) { return {}; }

struct Served {
  EngineOptions options;
  Program program;
};
Served served(std::int64_t slots, DType parameter = DType::f32, std::int64_t cache = kContext,
              DType cache_type = DType::f32) {
  const auto model = small_model();
  const EngineOptions options =
      completed(*model, {.slots = slots, .cache = cache, .parameter = parameter, .cache_type = cache_type});
  return {options, engine_program(*model, options, target_of_accelerators(), no_workspace)};
}

// So fast that bytes alone take time, and launches nothing.
Accelerator round_chip() {
  Accelerator chip;
  chip.name = "round";
  for (const ProductType type : {ProductType::bf16, ProductType::f32}) chip.products[type] = {FlopRate(1e18), 1};
  chip.memory = BytesPerSecond(1e9);
  return chip;
}
StackProfile round_stack() {
  StackProfile stack;
  stack.products = stack.attention = stack.movement = 1;
  stack.launch = 0;
  return stack;
}
KernelChoice in_f32() {
  KernelChoice kernels;
  kernels.products = ProductType::f32;
  kernels.attention = KernelChoice::Attention::unfused;
  kernels.half_copies = false;
  return kernels;
}
ServingTimes on_chip(const Served& one) {
  const ServedTimes priced = times_on_chip(one.program, one.options, round_chip(), in_f32(), round_stack());
  EXPECT_FALSE(priced.unknown);
  return priced.times;
}

Bytes cache_bytes(std::int64_t slots, std::int64_t cache) {
  return Bytes(2 * kLayers * slots * cache * kKvHeads * kHead * 4);
}

TEST(StepTimes, decoding_reads_the_parameters_and_the_whole_cache) {
  for (const std::int64_t slots : {1, 8}) {
    const Served one = served(slots);
    const ServingMemory memory = serving_memory(one.program, Bytes(), Bytes());
    const Bytes embedding(kVocabulary * kWidth * 4);  // a row of it a token
    const double least = (memory.parameters - embedding + memory.cache).count() / 1e9;
    const double time = on_chip(one).decode.back().second.count();
    EXPECT_GT(time, least);
    EXPECT_LT(time, 1.3 * least) << slots;  // activations of a token are small beside 512 × 512 weights
  }
}

// The embedding stays in f32; the chip's rate of int8 is that of bf16, whose bytes alone take time.
TEST(StepTimes, weights_in_int8_take_the_time_of_their_bytes) {
  const Served one = served(1, DType::i8);
  const ServingMemory memory = serving_memory(one.program, Bytes(), Bytes()),
                      wide = serving_memory(served(1).program, Bytes(), Bytes());
  const Bytes embedding(kVocabulary * kWidth * 4);
  EXPECT_LT((memory.parameters - embedding).count(), 0.26 * (wide.parameters - embedding).count());
  const double least = (memory.parameters - embedding + memory.cache).count() / 1e9;
  const double time = on_chip(one).decode.back().second.count();
  EXPECT_GT(time, least);
  EXPECT_LT(time, 1.3 * least);
}

TEST(StepTimes, a_longer_cache_takes_as_much_longer_as_its_bytes) {
  const double more = (cache_bytes(8, 256) - cache_bytes(8, 128)).count() / 1e9;
  EXPECT_NEAR(on_chip(served(8)).decode.back().second.count() -
                  on_chip(served(8, DType::f32, 128)).decode.back().second.count(),
              more, 0.01 * more);
}

TEST(StepTimes, keys_and_values_in_bf16_take_half_the_memory_and_time) {
  const Served narrow = served(8, DType::f32, kContext, DType::bf16);
  EXPECT_EQ(serving_memory(narrow.program, Bytes(), Bytes()).cache * 2, cache_bytes(8, kContext));
  const double less = cache_bytes(8, kContext).count() / 2e9;
  EXPECT_NEAR(on_chip(served(8)).decode.back().second.count() - on_chip(narrow).decode.back().second.count(), less,
              0.03 * less);
}

TEST(StepTimes, a_longer_bucket_takes_longer) {
  const ServingTimes times = on_chip(served(2));
  ASSERT_EQ(times.prefill.size(), 3U);  // 16, 64, 256
  EXPECT_LT(times.prefill_of(10), times.prefill_of(60));
  EXPECT_LT(times.prefill_of(60), times.prefill_of(65));
  EXPECT_EQ(times.prefill_of(65), times.prefill_of(256));
}

TEST(StepTimes, of_a_machine_with_rates_are_the_estimates_of_its_schedules) {
  MachineSpeed speed;
  speed.name = "round";
  speed.matmul = {{DType::f32, FlopRate(1e12)}};
  speed.chain = speed.kernel = speed.elementary = FlopRate(1e12);
  speed.memory = BytesPerSecond(1e10);
  const Served one = served(2);
  const ServedTimes priced = times_on_machine(one.program, one.options, speed);
  ASSERT_FALSE(priced.unknown);
  const Seconds two = priced.times.decode_of(2, 2 * kContext);
  EXPECT_NEAR(two.count(), estimate(one.program, speed).schedule_named("decode.2").time.count(), 1e-12);
  EXPECT_GT(two.count(), cache_bytes(2, kContext).count() / 1e10);
  EXPECT_LT(priced.times.decode_of(1), two);
  speed.matmul.clear();
  const ServedTimes unknown = times_on_machine(one.program, one.options, speed);
  ASSERT_TRUE(unknown.unknown);
  EXPECT_NE(unknown.unknown->find("f32"), std::string::npos) << *unknown.unknown;
}

TEST(StepTimes, memory_is_the_programs) {
  const Served one = served(8);
  const ServingMemory memory = serving_memory(one.program, kMiB, kGiB);
  EXPECT_EQ(memory.cache, cache_bytes(8, kContext));
  EXPECT_EQ(memory.total(), one.program.arena + kMiB);
  EXPECT_TRUE(memory.fits());
  EXPECT_FALSE(serving_memory(one.program, kMiB, memory.total() - Bytes(1)).fits());
  EXPECT_TRUE(serving_memory(one.program, kMiB, memory.total()).fits());
  EXPECT_EQ(serving_memory(served(8, DType::bf16).program, Bytes(), Bytes()).parameters * 2, memory.parameters);
}

}  // namespace
}  // namespace systole
