#include "predict/perf/estimate.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"

namespace systole {
namespace {

MachineSpeed round_machine() {
  MachineSpeed speed;
  speed.name = "round";
  speed.matmul = {{DType::f32, FlopRate(1e9)}};
  speed.chain = speed.kernel = FlopRate(1e16);
  speed.elementary = FlopRate(1e7);
  speed.memory = BytesPerSecond(1e18);
  return speed;
}

Target plain_target() {
  Target target;
  target.name = "test";
  target.kind = "reference";
  return target;
}

// "multiply": y = x w, 2 · 10³ flops, 2 µs. "square": z = e^y, 100 of them at 1e7, 10 µs. Actions: multiply twice,
// square once.
Program two_functions(Stream second, std::vector<int> waits) {
  const Type type(DType::f32, {10, 10});
  ProgramBuilder builder("two", Mesh{}, plain_target(), {});
  builder.add_value({"x", type, Residence::input, 1, std::nullopt, 0, 0});
  builder.add_value({"y", type, Residence::residual, 1, std::nullopt, 0, 0});
  builder.add_value({"z", type, Residence::output, 1, std::nullopt, 0, 0});
  Graph multiply("multiply");
  const Value w = multiply.parameter({"w", type, {}, true, true, 0});
  multiply.output("y", contract(multiply.input("x", type), w, "ik,kj->ij"));
  builder.add_parameters(multiply);
  const int m = builder.add_function("multiply", std::move(multiply), {}, {});
  Graph power("power");
  power.output("z", exp(power.input("y", type)));
  const int p = builder.add_function("power", std::move(power), {}, {});
  builder.add_schedule(
      {"train", {{m, 0, 0, Stream::compute, {}}, {m, 0, 0, Stream::compute, {}}, {p, 0, 0, second, std::move(waits)}}});
  return builder.finish();
}

TEST(Estimate, sums_actions_by_class_and_function) {
  const Estimate e = estimate(two_functions(Stream::compute, {}), round_machine());
  const ScheduleEstimate& train = e.schedule_named("train");
  EXPECT_NEAR(train.time.count(), 14e-6, 1e-12);
  EXPECT_NEAR(train.busy[OpClass::contraction].count(), 4e-6, 1e-12);
  EXPECT_NEAR(train.busy[OpClass::elementwise].count(), 10e-6, 1e-12);
  ASSERT_EQ(train.by_function.size(), 2U);
  EXPECT_EQ(train.by_function[0].first, "multiply");
  EXPECT_NEAR(train.by_function[0].second.count(), 4e-6, 1e-12);
  EXPECT_NEAR(train.by_function[1].second.count(), 10e-6, 1e-12);
  EXPECT_EQ(train.work.model_flops, 4000);
  EXPECT_EQ(train.work.transcendentals, 100);
  EXPECT_EQ(train.matmul_type, DType::f32);
  EXPECT_THROW(e.schedule_named("evaluate"), Failure);
}

TEST(Estimate, streams_run_side_by_side_but_waits_hold) {
  Program program = two_functions(Stream::compute, {});
  std::vector<Action>& actions = program.schedules[0].actions;
  actions[2].stream = Stream::network;  // from 0 to 10 µs beside 4 µs of compute
  EXPECT_NEAR(estimate(program, round_machine()).schedules[0].time.count(), 10e-6, 1e-12);
  actions[2].waits = {0};  // from 2 to 12 µs
  EXPECT_NEAR(estimate(program, round_machine()).schedules[0].time.count(), 12e-6, 1e-12);
  EXPECT_NEAR(estimate(program, round_machine()).schedules[0].busy.total().count(), 14e-6, 1e-12);
}

// x, w, y of 400 bytes each, in two functions that alternate.
TEST(Estimate, what_the_functions_of_a_schedule_touch_lies_between_two_runs) {
  const Program program = two_functions(Stream::compute, {});
  EXPECT_EQ(touched_between(program, 0), touched_between(program, 1));
  EXPECT_GE(touched_between(program, 0), Bytes(1200));
  Program apart = program;
  apart.schedules.clear();
  EXPECT_LT(touched_between(apart, 0), touched_between(program, 0));
}

TEST(Estimate, memory_is_the_programs) {
  const Program program = two_functions(Stream::compute, {});
  const Estimate e = estimate(program, round_machine());
  EXPECT_EQ(e.arena, program.arena);
  EXPECT_EQ(e.memory[Residence::parameter], memory_by_owner(program)[Residence::parameter]);
  EXPECT_GE(e.memory[Residence::parameter], Bytes(400));
}

TEST(Estimate, ratio_to_the_matmul_rate) {
  const MachineSpeed speed = round_machine();
  const Estimate e = estimate(two_functions(Stream::compute, {}), speed);
  // 4,000 model FLOPs in 14 µs at 1e9.
  EXPECT_NEAR(*matmul_ratio(e.schedules[0], speed), 4.0 / 14, 1e-6);
  ScheduleEstimate impossible = e.schedules[0];
  impossible.time = Seconds(1e-6);
  const auto withheld = matmul_ratio(impossible, speed);
  ASSERT_FALSE(withheld.ok());
  EXPECT_NE(withheld.error().message.find("4,000 model FLOPs"), std::string::npos);
  EXPECT_NE(withheld.error().message.find("assumed matmul rate (f32) of round"), std::string::npos);
}

// Without a rate, only the times are unknown.
TEST(Estimate, of_a_type_without_a_rate_is_unknown) {
  const Program program = two_functions(Stream::compute, {});
  MachineSpeed speed = round_machine();
  speed.matmul.clear();
  speed.contraction.clear();
  const Estimate e = estimate(program, speed);
  ASSERT_TRUE(e.unknown.has_value());
  EXPECT_NE(e.unknown->find("'round' has no matmul rate for f32"), std::string::npos) << *e.unknown;
  EXPECT_EQ(e.schedules[0].time, Seconds());
  EXPECT_EQ(e.schedules[0].work.model_flops, estimate(program, round_machine()).schedules[0].work.model_flops);
  EXPECT_EQ(e.arena, program.arena);
  EXPECT_FALSE(matmul_ratio(e.schedules[0], round_machine()).ok());
  EXPECT_FALSE(estimate(program, round_machine()).unknown.has_value());
}

TEST(Estimate, refuses_a_machine_without_rates) {
  EXPECT_THROW(estimate(two_functions(Stream::compute, {}), MachineSpeed{}), Failure);
}

}  // namespace
}  // namespace systole
