// Modules as text, and features beyond single ops: loops, regions, collectives, barriers, aliases.

#include "describe/stablehlo/module.h"

#include <gtest/gtest.h>

#include "describe/autodiff/autodiff.h"
#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"
#include "describe/ops/testing/op_case.h"
#include "describe/partition/builder.h"
#include "describe/partition/fused_step.h"
#include "describe/stablehlo/testing/xla.h"

namespace systole::stablehlo {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

TEST(Module, ReadsAsItIsWritten) {
  Graph g("axpy");
  const Value x = g.input("x", Type(DType::f32, {2, 3})), y = g.input("y", Type(DType::f32, {2, 3}));
  g.output("z", add(scale(x, 0.1), y).named("z"));
  EXPECT_EQ(lower(g).text, R"(module @axpy attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(
      %arg0: tensor<2x3xf32>,
      %arg1: tensor<2x3xf32>)
      -> (
      tensor<2x3xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.10000000149011612> : tensor<2x3xf32>} : () -> tensor<2x3xf32> loc("constant")
    %1 = "stablehlo.multiply"(%arg0, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("mul")
    %2 = "stablehlo.add"(%1, %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("z: add")
    "func.return"(%2) : (tensor<2x3xf32>) -> ()
  }
}
)");
}

Target small_target() {
  Target target;
  target.name = target.kind = "test";
  return target;
}

// w' = all-gather of each device's half of w - x, on two devices: a coordinate, collectives, an alias, a donation.
Program on_two() {
  const Mesh mesh = Mesh::parse("data=2").value();
  ProgramBuilder b("two", mesh, small_target(), nullptr);
  const Type local(DType::f32, {2, 3}), whole(DType::f32, {4, 3});
  const auto value = [&](const char* name, const Type& type, Residence residence, std::optional<CutValue> cut) {
    ProgramValue made{name, type, residence};
    made.cut = std::move(cut);
    b.add_value(std::move(made));
  };
  value("w", whole, Residence::parameter, CutValue{whole, Layout{{Layout::kWhole}}});
  value("x", local, Residence::input, CutValue{whole, Layout{{0}}});
  value("loss", Type(DType::f32, {}), Residence::output, std::nullopt);
  value("coordinate/data", Type(DType::i64, {}), Residence::input, std::nullopt);
  Graph g("step");
  const Value w = g.input("w", whole), x = g.input("x", local), here = g.input("coordinate.data", Type(DType::i64, {}));
  const Value mine = sub(take_part(w, here, 0, 2), x);
  g.output("w", all_gather(mine, "data", 2, 0));
  g.output("loss", all_reduce(sum_all(mine), "data", 2));
  b.add_function("step", std::move(g), {{"coordinate.data", {"coordinate/data"}}}, {}, {"x"});
  b.add_schedule({"train", {{0, 0, 0, Stream::compute, {}}}});
  return b.finish();
}

TEST(Module, OfAMeshIsWhatOneDeviceDoes) {
  const Program program = on_two();
  const Module module = lower(program, program.functions[0]);
  EXPECT_EQ(module.devices, 2);
  ASSERT_EQ(module.arguments.size(), 2U) << "a coordinate comes from the device's number";
  EXPECT_EQ(module.arguments[0].name, "w");
  EXPECT_EQ(module.arguments[1].whole, Type(DType::f32, {4, 3}));
  EXPECT_EQ(module.arguments[1].local, Type(DType::f32, {2, 3}));
  EXPECT_EQ(module.results.size(), 2U);
  ASSERT_EQ(module.aliases.size(), 1U);
  EXPECT_EQ(module.donated, (std::vector<bool>{true, true}));
  const std::string& text = module.text;
  EXPECT_NE(text.find("sdy.mesh @mesh = <[\"data\"=2]>"), text.npos) << text;
  EXPECT_NE(text.find("tf.aliasing_output = 0 : i32"), text.npos) << text;
  EXPECT_NE(text.find("jax.buffer_donor = true"), text.npos) << text;
  EXPECT_NE(text.find("sdy.sharding = #sdy.sharding<@mesh, [{\"data\"}, {}]>"), text.npos) << text;
  EXPECT_TRUE(text.starts_with("#groups_data = dense<[[0, 1]]> : tensor<1x2xi64>\nmodule @step")) << text;
  EXPECT_EQ(count_of(text, "replica_groups = #groups_data, "), 2U) << text;
}

// The text holds each device number once per set of axes, not once per collective.
TEST(Module, GroupsOfManyDevicesAreWrittenOnce) {
  const Mesh mesh = Mesh::parse("data=16 fsdp=128 model=8").value();
  ProgramBuilder b("large", mesh, small_target(), nullptr);
  const Type type(DType::f32, {8, 8});
  for (const auto& [name, residence] : {std::pair("x", Residence::input), {"y", Residence::output}})
    b.add_value({name, type, residence, 1, {}, 0, 0, CutValue{type, Layout{{-1, -1, -1}}}});
  Graph g("step");
  Value x = g.input("x", type);
  for (int i = 0; i < 20; ++i) x = all_reduce(all_reduce(all_reduce(x, "model", 8), "data,fsdp", 2048), "fsdp", 128);
  g.output("y", x);
  b.add_function("step", std::move(g), {}, {});
  b.add_schedule({"train", {{0, 0, 0, Stream::compute, {}}}});
  const Program program = b.finish();
  const Module module = lower(program, program.functions[0]);
  EXPECT_EQ(module.devices, 16384);
  EXPECT_EQ(count_of(module.text, ": tensor<2048x8xi64>\n"), 1U);
  EXPECT_EQ(count_of(module.text, "replica_groups = #groups_data_fsdp, "), 20U);
  EXPECT_LE(module.text.size(), 3 * 16384 * std::string_view("12345, ").size() + 60 * 600);
}

TEST(Module, PermutesSayWhoSendsToWhom) {
  const Mesh mesh = Mesh::parse("data=2 context=3").value();
  ProgramBuilder b("ring", mesh, small_target(), nullptr);
  const Type type(DType::f32, {4});
  for (const auto& [name, residence] : {std::pair("x", Residence::input), {"y", Residence::output}})
    b.add_value({name, type, residence, 1, {}, 0, 0, CutValue{type, Layout{{-1, -1}}}});
  Graph g("step");
  Value x = g.input("x", type);
  for (const std::int64_t by : {1, 1, -1, 3}) x = collective_permute(x, "context", 3, by);
  g.output("y", x);
  b.add_function("step", std::move(g), {}, {});
  b.add_schedule({"train", {{0, 0, 0, Stream::compute, {}}}});
  const Program program = b.finish();
  const std::string text = lower(program, program.functions[0]).text;
  const auto defined = [&](const char* line) { return count_of(text, line); };
  EXPECT_EQ(defined("#pairs_context_1 = dense<[[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]> : tensor<6x2xi64>\n"),
            1U)
      << text;
  EXPECT_EQ(defined("#pairs_context__1 = dense<[[0, 2], [1, 0], [2, 1], [3, 5], [4, 3], [5, 4]]> : tensor<6x2xi64>\n"),
            1U);
  EXPECT_EQ(count_of(text, "stablehlo.collective_permute"), 3U) << "three further is home\n" << text;
  EXPECT_EQ(count_of(text, "source_target_pairs = #pairs_context_1, channel_handle"), 2U) << text;
}

TEST(Module, OfAMeshRuns) {
  NEEDS("cpu");
  const Program program = on_two();
  const Module module = lower(program, program.functions[0]);
  std::vector<double> weights(12), rows(12);
  for (std::size_t i = 0; i < 12; ++i)
    weights[i] = 1.0 + static_cast<double>(i), rows[i] = 0.5 * static_cast<double>(i);
  const HostTensor w(DType::f32, {4, 3}, weights);
  const Compiled compiled(*it, module);
  const auto half = [&](std::size_t d) {
    return HostTensor(DType::f32, {2, 3}, std::span<const double>(rows).subspan(6 * d, 6));
  };
  const DeviceValues got = compiled.run({{w, half(0)}, {w, half(1)}});
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(got[d][0].at(i), 1 + 0.5 * static_cast<double>(i));
    EXPECT_EQ(got[d][1].at(0), 12 + 0.5 * 66);
  }
  EXPECT_EQ(compiled.memory().aliased, Bytes(48));
}

// y = product of x with the weights, layer by layer, in both directions; all products stacked.
Graph layers(bool reverse) {
  const Type row(DType::f32, {4}), weights(DType::f32, {3, 4});
  Graph body("body");
  const Value h = body.input("h", row), w = body.input("w", row), shift = body.input("shift", row);
  const Value next = add(mul(h, w), shift);
  body.output("h", next);
  body.output("seen", tanh(next));
  Graph g("layers");
  const Value x = g.input("x", row), all = g.input("w", weights), s = g.input("shift", row);
  const Value carries[] = {x}, stacked[] = {all}, shared[] = {s};
  const Repeat made = repeat(std::move(body), 3, carries, stacked, shared, "layer", reverse);
  g.output("y", made.carries[0]);
  g.output("seen", made.outputs[0]);
  return g;
}

TEST(Module, RepeatsAreLoopsOrUnrolled) {
  NEEDS("cpu");
  std::vector<HostTensor> inputs;
  for (const Shape& shape : {Shape{4}, Shape{3, 4}, Shape{4}}) {
    HostTensor tensor(DType::f32, shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 0.3 * static_cast<double>(i % 5) - 0.4);
    inputs.push_back(tensor);
  }
  for (const bool reverse : {false, true}) {
    const Graph graph = layers(reverse);
    const std::vector<HostTensor> want = evaluate(graph, inputs);
    for (const bool unroll : {false, true}) {
      LowerOptions options;
      options.unroll = unroll;
      const Module module = lower(graph, options);
      EXPECT_EQ(count_of(module.text, "stablehlo.while"), unroll ? 0U : 1U);
      EXPECT_EQ(count_of(module.text, "loc(\"layer/mul\")"), unroll ? 3U : 1U) << module.text;
      const std::vector<HostTensor> got = run(*it, module, inputs);
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(difference(got[i], want[i], 1e-6), "") << reverse << unroll;
    }
  }
}

// Recomputed nodes are fenced from the first computation, once; casts are not.
TEST(Module, RecomputedRegionsAreFenced) {
  const Type row(DType::f32, {4});
  Graph g("again");
  const Value x = g.input("x", row), w = g.input("w", row), incoming = g.input("g", row);
  const Value first = tanh(mul(x, w));
  g.output("y", first);
  const Value wide = cast(x, DType::f64);
  g.last_node().recomputed = true;
  const Value back = cast(wide, DType::f32);
  g.output("plain", neg(back));
  const Value product = mul(x, w);
  g.last_node().recomputed = true;
  const Value again = tanh(product);
  g.last_node().recomputed = true;
  Graph chain("chain");
  const Value link = chain.input("x", row);
  chain.output("y", neg(link));
  chain.last_node().recomputed = true;
  std::vector<Graph> regions;
  regions.push_back(std::move(chain));
  const Value fused = g.apply("fusion", std::vector<Value>{again}, {}, std::move(regions))[0];
  g.last_node().recomputed = true;
  g.output("z", mul(fused, again));
  g.output("dw", mul(again, incoming));
  LowerOptions options;
  for (const bool unroll : {false, true}) {
    options.unroll = unroll;
    const std::string text = lower(g, options).text;
    EXPECT_EQ(count_of(text, "stablehlo.optimization_barrier"), 1U) << text;
    // In unrolled bodies each barrier also waits for the incoming gradient.
    const std::string taken = unroll ? "(%arg0, %arg1, %arg2) :" : "(%arg0, %arg1) :";
    EXPECT_NE(text.find("\"stablehlo.optimization_barrier\"" + taken), text.npos) << text;
  }
}

TEST(Module, WhatCannotBeLoweredIsNamedWithItsPlace) {
  Graph body("body");
  const Type row(DType::f32, {4});
  const Value h = body.input("h", row);
  body.output("h", all_reduce(h, "model", 2).named("attn.o"));
  Graph g("layers");
  const Value carries[] = {g.input("x", row)};
  g.output("y", repeat(std::move(body), 3, carries, {}, {}).carries[0]);
  try {
    lower(g);
    FAIL() << "a collective over an axis that the mesh lacks";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::unsupported);
    EXPECT_NE(failure.error().message.find("'model'"), std::string::npos) << failure.what();
    EXPECT_NE(failure.error().message.find("(at layer/attn.o: all_reduce)"), std::string::npos) << failure.what();
  }
}

}  // namespace
}  // namespace systole::stablehlo
