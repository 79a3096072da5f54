#include "predict/prove/executed.h"

#include <gtest/gtest.h>

#include "predict/prove/instruction_facts.h"
#include "predict/prove/testing/hlo_builder.h"

namespace systole::prove {
namespace {

using pjrt::HloInstruction;

const pjrt::HloShape kRow = HloBuilder::of(DType::f32, {256});       // 1,024 bytes
const pjrt::HloShape kWhole = HloBuilder::of(DType::f32, {4, 256});  // 4,096

void cost(HloBuilder& b, std::int64_t id, const std::string& cycles) {
  b.instruction(id).backend_config = R"({"flag_configs":[],"estimated_cycles":")" + cycles + R"(","x":[]})";
}

// A loop of three iterations around `body`, which the callback writes; returns the while's id.
template <typename Body>
std::int64_t loop_of_three(HloBuilder& b, Body write) {
  const std::int64_t body = b.computation();
  const std::int64_t i = b.part(b.parameter(), 0);
  write();
  b.add("tuple", {b.add("add", {i, b.constant(1)})});
  const std::int64_t condition = b.computation();
  const std::int64_t at = b.part(b.parameter(), 0);
  b.compare("LT", at, b.constant(3));
  b.computation();
  return b.call("while", {b.add("tuple", {b.constant(0)})}, {body, condition}, {});
}

TEST(Executed, cycles_are_counted_as_often_as_they_run) {
  HloBuilder b;
  loop_of_three(b, [&] { cost(b, b.add("fusion", {}, kRow), "100"); });
  cost(b, b.add("fusion", {}, kRow), "7");
  const ExecutedModule seen = executed_of(b.done());
  EXPECT_EQ(seen.cycles, 307);
  EXPECT_EQ(seen.timed, 4);
  EXPECT_TRUE(seen.endless.empty());
}

// A fusion of a product with what follows it counts as the product; a name from other StableHLO counts as unnamed.
TEST(Executed, cycles_are_told_by_the_op_that_they_came_from) {
  HloBuilder b;
  const std::int64_t fused = b.computation();
  b.instruction(b.add("dot", {}, kRow)).source = "call.1/layer/attn.q: contract";
  b.instruction(b.add("add", {}, kRow)).source = "call.1/layer/add";
  b.computation();
  const auto costs = [&](std::int64_t id, const char* source, const char* cycles) {
    b.instruction(id).source = source;
    cost(b, id, cycles);
  };
  costs(b.call("fusion", {}, {fused}, kRow), "call.1/layer/add", "100");
  costs(b.add("fusion", {}, kRow), "call.1/layer/norm: rms_norm", "10");
  costs(b.add("copy", {}, kRow), "call.1/broadcast.80", "7");
  costs(b.add("copy", {}, kRow), "", "1");
  const ExecutedModule seen = executed_of(b.done());
  EXPECT_EQ(seen.by_op, (std::vector<OpCycles>{{"", 8}, {"contract", 100}, {"rms_norm", 10}}));
}

TEST(Executed, what_has_no_cycles_is_named_and_no_time_is_made_up) {
  HloBuilder b;
  loop_of_three(b, [&] {
    const std::int64_t kernel = b.add("custom-call", {}, kRow);
    b.instruction(kernel).custom_call_target = "tpu_custom_call";
    b.add("copy-start", {}, kRow);
    b.add("copy-done", {}, kRow);
  });
  const ExecutedModule seen = executed_of(b.done());
  EXPECT_EQ(seen.cycles, 0);
  ASSERT_EQ(seen.untimed.size(), 4U);  // with the loop's own add and compare
  EXPECT_EQ(seen.untimed[2], (UntimedKind{"copy-start", 1, 3, Bytes(3072)}));
  EXPECT_EQ(seen.untimed[3], (UntimedKind{"custom-call tpu_custom_call", 1, 3, Bytes(3072)}));
}

TEST(Executed, a_loop_whose_rounds_are_not_known_is_said) {
  HloBuilder b;
  const std::int64_t body = b.computation();
  cost(b, b.add("fusion", {b.parameter()}, kRow), "5");
  const std::int64_t condition = b.computation();
  const std::int64_t at = b.part(b.parameter(), 0);
  b.compare("LT", at, b.constant(3));
  b.computation();
  const std::int64_t loop = b.call("while", {b.parameter()}, {body, condition}, {});
  const std::string name = b.instruction(loop).name;
  const ExecutedModule seen = executed_of(b.done());
  EXPECT_EQ(seen.cycles, 5) << "counted once";
  EXPECT_EQ(seen.endless, std::vector<std::string>{name});
}

TEST(Executed, of_a_conditional_the_costliest_branch) {
  HloBuilder b;
  const std::int64_t cheap = b.computation();
  cost(b, b.add("fusion", {}, kRow), "5");
  const std::int64_t dear = b.computation();
  cost(b, b.add("fusion", {}, kRow), "50");
  b.computation();
  b.call("conditional", {b.constant(1)}, {cheap, dear}, {});
  EXPECT_EQ(executed_of(b.done()).cycles, 50);
}

TEST(Executed, collectives_by_kind_size_and_origin) {
  HloBuilder b;
  loop_of_three(b, [&] {
    const std::int64_t row = b.add("fusion", {}, kRow);
    const std::int64_t gather = b.add("all-gather", {row}, kWhole);
    b.instruction(gather).source = "jit(step)/w";
    b.instruction(gather).groups = {{0, 1, 2, 3}};
    const std::int64_t again = b.add("all-gather", {row}, kWhole);
    b.instruction(again).source = "jit(step)/w";
    b.instruction(again).groups = {{0, 1, 2, 3}};
  });
  const std::int64_t whole = b.add("fusion", {}, kWhole), row = b.add("fusion", {}, kRow);
  b.instruction(b.add("reduce-scatter", {whole}, kRow)).group_size = 4;
  pjrt::HloShape started;
  started.parts = {kRow, kWhole};
  b.add("all-gather-start", {row}, started);
  b.add("all-gather-done", {}, kWhole);
  const ExecutedModule seen = executed_of(b.done());
  ASSERT_EQ(seen.collectives.size(), 3U);
  EXPECT_EQ(seen.collectives[0], (CompiledCollective{"all_gather", "jit(step)/w", Bytes(4096), 4, 2, 6}));
  EXPECT_EQ(seen.collectives[1], (CompiledCollective{"all_gather", "", Bytes(4096), 0, 1, 1}));
  EXPECT_EQ(seen.collectives[2], (CompiledCollective{"reduce_scatter", "", Bytes(4096), 4, 1, 1}));
}

// The TPU compiler puts collectives into fusions, and asynchronous ones into computations of their own.
TEST(Executed, collectives_inside_of_fusions_and_asynchronous_calls) {
  HloBuilder b;
  const std::int64_t inner = b.computation();
  b.add("all-reduce", {b.add("parameter", {}, kWhole)}, kWhole);
  b.computation();
  cost(b, b.call("fusion", {}, {inner}, kRow), "9");
  b.call("async-start", {}, {inner}, kRow);
  b.add("async-done", {}, kRow);
  const ExecutedModule seen = executed_of(b.done());
  ASSERT_EQ(seen.collectives.size(), 1U);
  EXPECT_EQ(seen.collectives[0], (CompiledCollective{"all_reduce", "", Bytes(4096), 0, 2, 2}));
  EXPECT_EQ(seen.cycles, 9);
  ASSERT_EQ(seen.untimed.size(), 1U);
  EXPECT_EQ(seen.untimed[0].name, "all-reduce");
}

// Each computation calls the one before it twice, and one calls itself: the walk gives up instead of running forever.
TEST(Executed, of_hostile_modules_ends) {
  HloBuilder b;
  std::int64_t before = b.computation();
  b.add("add", {}, kRow);
  for (int depth = 0; depth < 60; ++depth) {
    const std::int64_t next = b.computation();
    b.call("call", {}, {before});
    b.call("call", {}, {before});
    before = next;
  }
  EXPECT_FALSE(executed_of(b.done()).endless.empty());
  HloBuilder self;
  const std::int64_t id = self.computation();
  self.call("fusion", {}, {id}, kRow);
  self.call("while", {}, {id, id}, kRow);
  self.call("conditional", {}, {id, id}, kRow);
  (void)executed_of(self.done());
}

TEST(Executed, kinds_of_collectives) {
  EXPECT_EQ(collective_kind("all-to-all"), "all_to_all");
  EXPECT_EQ(collective_kind("collective-permute-start"), "collective_permute");
  for (const char* none : {"all-reduce-done", "reduce", "all-reduces", "", "send"})
    EXPECT_EQ(collective_kind(none), "");
}

}  // namespace
}  // namespace systole::prove
