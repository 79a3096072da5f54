#include "predict/prove/compiled_step.h"

#include <gtest/gtest.h>

#include "predict/prove/testing/hlo_builder.h"

namespace systole::prove {
namespace {

const pjrt::HloShape kPart = HloBuilder::of(DType::f32, {250});      // 1,000 bytes
const pjrt::HloShape kWhole = HloBuilder::of(DType::f32, {4, 250});  // 4,000: a gather among four takes 3 s below

// One cycle per second, a byte of memory per millisecond, four chips in a line with links of 1,000 B/s.
Slice slow() {
  Slice slice;
  slice.name = "slow:4";
  slice.cycles_per_second = 1;
  slice.bandwidth = BytesPerSecond(1000);
  slice.peak = FlopRate(100);
  slice.network = SliceNetwork{{{4, false}}, 1, BytesPerSecond(1000), Seconds(0)};
  return slice;
}

// With an empty entry.
HloBuilder begun() {
  HloBuilder b;
  b.computation();
  return b;
}

std::int64_t compute(HloBuilder& b, int cycles) {
  const std::int64_t id = b.add("fusion", {}, kPart);
  b.instruction(id).backend_config = fmt::format(R"({{"estimated_cycles":"{}"}})", cycles);
  return id;
}

std::int64_t start_gather(HloBuilder& b) {
  pjrt::HloShape both;
  both.parts = {kPart, kWhole};
  return b.add("all-gather-start", {b.add("parameter", {}, kPart)}, both);
}

StepTime seconds(double compute, double kernels, double collectives, double exposed, double copies) {
  return {Seconds(compute), Seconds(kernels), Seconds(collectives), Seconds(exposed), Seconds(copies)};
}

TEST(StepTime, a_collective_is_waited_for_where_it_stands) {
  HloBuilder b = begun();
  compute(b, 5);
  b.add("all-gather", {b.add("parameter", {}, kPart)}, kWhole);
  compute(b, 2);
  EXPECT_EQ(step_time(b.done(), slow()), seconds(7, 0, 3, 3, 0));
}

TEST(StepTime, what_the_cores_compute_meanwhile_hides_it) {
  for (const auto& [beside, exposed] : {std::pair(2, 1.0), {3, 0.0}, {9, 0.0}}) {
    HloBuilder b = begun();
    const std::int64_t gather = start_gather(b);
    compute(b, beside);
    b.add("all-gather-done", {gather}, kWhole);
    EXPECT_EQ(step_time(b.done(), slow()), seconds(beside, 0, 3, exposed, 0));
  }
}

TEST(StepTime, two_share_one_network) {
  HloBuilder b = begun();
  const std::int64_t first = start_gather(b), second = start_gather(b);
  compute(b, 4);
  b.add("all-gather-done", {first}, kWhole);
  b.add("all-gather-done", {second}, kWhole);
  EXPECT_EQ(step_time(b.done(), slow()), seconds(4, 0, 6, 2, 0));
}

TEST(StepTime, a_loop_is_its_body_as_often_as_it_runs) {
  HloBuilder b;
  const std::int64_t body = b.computation();
  const std::int64_t i = b.part(b.parameter(), 0);
  const std::int64_t gather = start_gather(b);
  compute(b, 1);
  b.add("all-gather-done", {gather}, kWhole);
  b.add("tuple", {b.add("add", {i, b.constant(1)})});
  const std::int64_t condition = b.computation();
  b.compare("LT", b.part(b.parameter(), 0), b.constant(5));
  b.computation();
  b.call("while", {b.add("tuple", {b.constant(0)})}, {body, condition}, {});
  EXPECT_EQ(step_time(b.done(), slow()), seconds(5, 0, 15, 10, 0));
}

// One fusion starts the collective, one continues it, one ends it: it stands in all three.
TEST(StepTime, one_that_is_cut_over_fusions) {
  HloBuilder b;
  const auto fused = [&](const char* target) {
    const std::int64_t id = b.computation();
    b.add("all-gather", {b.add("parameter", {}, kPart)}, kWhole);
    b.instruction(b.add("custom-call", {})).custom_call_target = target;
    return id;
  };
  const std::int64_t begins = fused("AsyncCollectiveStart"), ends = fused("AsyncCollectiveDone");
  b.computation();
  for (const std::int64_t part : {begins, ends}) {
    const std::int64_t id = b.call("fusion", {}, {part}, kPart);
    b.instruction(id).backend_config = R"({"estimated_cycles":"1"})";
    if (part == begins) compute(b, 1);
  }
  EXPECT_EQ(step_time(b.done(), slow()), seconds(3, 0, 3, 1, 0));
}

TEST(StepTime, copies_between_memories) {
  HloBuilder b = begun();
  pjrt::HloShape copied;
  copied.parts = {kPart, kPart};
  const std::int64_t copy = b.add("copy-start", {b.add("parameter", {}, kPart)}, copied);
  b.add("copy-done", {copy}, kPart);
  EXPECT_EQ(step_time(b.done(), slow()), seconds(0, 0, 0, 0, 1));
  HloBuilder async = begun();
  pjrt::HloShape sliced;
  sliced.parts = {kWhole, kPart};
  async.add("async-done", {async.add("async-start", {async.add("parameter", {}, kWhole)}, sliced)}, kPart);
  EXPECT_EQ(step_time(async.done(), slow()), seconds(0, 0, 0, 0, 1)) << "a slice of what goes in";
  HloBuilder here = begun();
  here.add("copy", {here.add("parameter", {}, kPart)}, kPart);
  EXPECT_EQ(step_time(here.done(), slow()), seconds(0, 0, 0, 0, 2)) << "out and in again";
}

TEST(StepTime, a_kernel_at_what_it_states_or_what_it_moves) {
  HloBuilder b = begun();
  const std::int64_t plain = b.add("custom-call", {b.add("parameter", {}, kPart)}, kPart);
  b.instruction(plain).custom_call_target = "tpu_custom_call";
  EXPECT_EQ(step_time(b.done(), slow()), seconds(0, 2, 0, 0, 0));
  b.instruction(plain).backend_config = R"({"cost_estimate":{"flops":"500","bytes_accessed":"100"}})";
  EXPECT_EQ(step_time(b.done(), slow()), seconds(0, 5, 0, 0, 0));
}

TEST(StepTime, the_schedule_is_the_order) {
  HloBuilder b = begun();
  const std::int64_t gather = start_gather(b);
  const std::int64_t done = b.add("all-gather-done", {gather}, kWhole);
  const std::int64_t other = compute(b, 3);
  pjrt::HloModule module = b.done();
  EXPECT_EQ(step_time(module, slow()).exposed, Seconds(3));
  module.schedule[module.entry] = {gather - 1, gather, other, done};
  EXPECT_EQ(step_time(module, slow()).exposed, Seconds(0));
}

TEST(StepTime, of_hostile_modules_ends) {
  HloBuilder self;
  const std::int64_t id = self.computation();
  self.call("fusion", {}, {id}, kPart);
  self.call("while", {}, {id, id}, kPart);
  self.call("conditional", {}, {id, id}, kPart);
  self.add("all-gather-done", {}, kPart);
  (void)step_time(self.done(), slow());
  HloBuilder b;
  std::int64_t before = b.computation();
  compute(b, 1);
  for (int depth = 0; depth < 60; ++depth) {
    const std::int64_t next = b.computation();
    b.call("call", {}, {before});
    b.call("fusion", {}, {before});
    before = next;
  }
  (void)step_time(b.done(), slow());
}

}  // namespace
}  // namespace systole::prove
