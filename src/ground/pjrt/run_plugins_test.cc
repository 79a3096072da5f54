// Runs programs with XLA's CPU plugins of three interface versions.

#include <algorithm>

#include "ground/pjrt/client.h"
#include "ground/pjrt/testing/vendors_plugin.h"

namespace systole::pjrt {
namespace {

template <typename T>
std::span<const std::byte> bytes_of_values(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<float> floats(const Buffer& buffer) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(buffer.shape().value())));
  const Event event = buffer.copy_to(std::as_writable_bytes(std::span(values))).value();
  EXPECT_TRUE(event.wait().ok());
  return values;
}

class XlaPluginCpu : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Each, XlaPluginCpu, testing::Values("cpu", "cpu-106", "cpu-81"), [](const auto& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// state + rate · gradient, with the state donated; the gradient twice, transposed.
constexpr const char* kStep = R"(
module @step {
  func.func public @main(%state: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %g: tensor<3x2xf32>)
      -> (tensor<2x3xf32>, tensor<3x2xf32>) {
    %t = stablehlo.transpose %g, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %0 = stablehlo.add %state, %t : tensor<2x3xf32>
    %1 = stablehlo.add %g, %g : tensor<3x2xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<3x2xf32>
  }
})";

TEST_P(XlaPluginCpu, RunsAndDonates) {
  NEEDS(GetParam());
  const Client client = Client::create(*it).value();
  EXPECT_EQ(client.platform().value(), "cpu");
  EXPECT_EQ(client.process().value(), 0);
  ASSERT_FALSE(client.local().value().empty());
  const LoadedExecutable program = client.compile({.code = kStep}, {}).value();
  EXPECT_EQ(program.devices().value().size(), 1U);

  Buffer state = client.upload(bytes_of_values<float>({1, 2, 3, 4, 5, 6}), DType::f32, {2, 3}, 0).value();
  const Buffer gradient =
      client.upload(bytes_of_values<float>({10, 20, 30, 40, 50, 60}), DType::f32, {3, 2}, 0).value();
  EXPECT_EQ(state.shape().value(), (Shape{2, 3}));
  EXPECT_EQ(state.dtype().value(), DType::f32);
  EXPECT_GE(state.device_bytes().value(), Bytes(24));
  for (int step = 1; step <= 3; ++step) {
    std::vector<DeviceRun> runs = program.run({{&state, &gradient}}).value();
    ASSERT_EQ(runs.size(), 1U);
    ASSERT_EQ(runs[0].outputs.size(), 2U);
    ASSERT_TRUE(runs[0].done.wait().ok());
    EXPECT_TRUE(runs[0].done.is_ready().value());
    EXPECT_TRUE(state.is_deleted().value()) << "a donated argument is still there";
    EXPECT_FALSE(gradient.is_deleted().value());
    state = std::move(runs[0].outputs[0]);
    const auto k = static_cast<float>(step);
    EXPECT_EQ(floats(state),
              (std::vector<float>{1 + 10 * k, 2 + 30 * k, 3 + 50 * k, 4 + 20 * k, 5 + 40 * k, 6 + 60 * k}));
    EXPECT_EQ(floats(runs[0].outputs[1]), (std::vector<float>{20, 40, 60, 80, 100, 120}));
  }
  // Kept: the program uses a copy.
  const std::int64_t kept[] = {0};
  ASSERT_TRUE(program.run({{&state, &gradient}}, kept).ok());
  EXPECT_FALSE(state.is_deleted().value());
  EXPECT_EQ(floats(state)[0], 31);
}

TEST_P(XlaPluginCpu, WhatItIsAndWhatItCosts) {
  NEEDS(GetParam());
  const Client client = Client::create(*it).value();
  const Executable program = client.compile({.code = kTwoOps}, {}).value().executable().value();
  const MemoryStats memory = program.memory().value();
  EXPECT_EQ(memory.arguments, Bytes(256 * 512 * 2 + 512 * 128 * 2));
  EXPECT_EQ(memory.outputs, Bytes(256 * 128 * 4));
  EXPECT_EQ(memory.allocated.has_value(), it->version() >= (ApiVersion{0, 104}));
  EXPECT_EQ(program.outputs().value()[0].shape, (Shape{256, 128}));
  const Result<std::vector<NamedValue>> costs = program.costs();  // some of these plugins have the function, no costs
  if (costs.ok())
    EXPECT_GE(cost(program, "flops"), 2.0 * 256 * 512 * 128);
  else
    EXPECT_EQ(costs.error().kind, ErrorKind::unsupported);
  EXPECT_FALSE(program.optimized().value().bytes.empty());
  EXPECT_NE(program.name().value().find("two_ops"), std::string::npos) << program.name().value();
}

TEST_P(XlaPluginCpu, AProgramIsKeptAndLoadedAgain) {
  NEEDS(GetParam());
  const Client client = Client::create(*it).value();
  const std::string kept = client.compile({.code = kStep}, {}).value().executable().value().serialized().value();
  const LoadedExecutable program = client.load(kept).value();
  const Buffer state = client.upload(bytes_of_values<float>({1, 2, 3, 4, 5, 6}), DType::f32, {2, 3}, 0).value();
  const Buffer gradient = client.upload(bytes_of_values<float>({1, 1, 1, 1, 1, 1}), DType::f32, {3, 2}, 0).value();
  EXPECT_EQ(floats(program.run({{&state, &gradient}}).value()[0].outputs[0]), (std::vector<float>{2, 3, 4, 5, 6, 7}));
  const Result<LoadedExecutable> cut = client.load(std::string_view(kept).substr(0, kept.size() / 2));
  EXPECT_FALSE(cut.ok());
}

TEST_P(XlaPluginCpu, ErrorsAreResults) {
  NEEDS(GetParam());
  const Client client = Client::create(*it).value();
  EXPECT_EQ(client.compile({.code = "no module"}, {}).error().kind, ErrorKind::invalid);
  EXPECT_FALSE(client.compile({.code = kStep}, {.replicas = 1000}).ok());
  const Result<LoadedExecutable> flag =
      client.compile({.code = kStep}, {.flags = {{"xla_no_such_flag", std::string("1")}}});
  ASSERT_FALSE(flag.ok());
  EXPECT_NE(flag.error().message.find("xla_no_such_flag"), std::string::npos) << flag.error().message;

  const LoadedExecutable program = client.compile({.code = kStep}, {}).value();
  const Buffer wrong = client.upload(bytes_of_values<float>({1, 2}), DType::f32, {2}, 0).value();
  EXPECT_FALSE(program.run({{&wrong}}).ok());
  EXPECT_FALSE(program.run({{&wrong, &wrong}}).ok());
  EXPECT_EQ(program.run({}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(program.run({{&wrong, &wrong}, {&wrong, &wrong}}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(client.upload(bytes_of_values<float>({1, 2}), DType::f32, {2}, 99).error().kind, ErrorKind::invalid);
  Buffer gone = client.upload(bytes_of_values<float>({1, 2, 3, 4, 5, 6}), DType::f32, {2, 3}, 0).value();
  ASSERT_TRUE(gone.remove().ok());
  const Buffer gradient = client.upload(bytes_of_values<float>({1, 1, 1, 1, 1, 1}), DType::f32, {3, 2}, 0).value();
  EXPECT_FALSE(program.run({{&gone, &gradient}}).ok());
}

TEST_P(XlaPluginCpu, EveryTypeComesBackAsItWent) {
  NEEDS(GetParam());
  const Client client = Client::create(*it).value();
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Shape shape{3, 5};
    std::vector<std::byte> sent(static_cast<std::size_t>(bytes_of(dtype, shape).count()));
    for (std::size_t k = 0; k < sent.size(); ++k)
      sent[k] = static_cast<std::byte>(dtype == DType::boolean ? k % 2 : k * 7 % 120);
    Client::Upload upload = client.upload_later(sent, dtype, shape, 0).value();
    ASSERT_TRUE(upload.done.wait().ok());
    ASSERT_TRUE(upload.buffer.ready().value().wait().ok());
    EXPECT_EQ(upload.buffer.dtype().value(), dtype) << name_of(dtype);
    std::vector<std::byte> back(sent.size());
    ASSERT_TRUE(upload.buffer.copy_to(back).value().wait().ok()) << name_of(dtype);
    EXPECT_EQ(back, sent) << name_of(dtype);
  }
}

// The CPU plugin has a configurable number of devices, so programs for many devices run without any.
void expect_sums_over_four(const Plugin& plugin, const char* text, const CompileOptions& options) {
  const Client client = Client::create(plugin, {{"cpu_device_count", std::int64_t{4}}}).value();
  ASSERT_EQ(client.local().value().size(), 4U);
  const LoadedExecutable program = client.compile({.code = text}, options).value();
  EXPECT_EQ(program.devices().value(), (std::vector<int>{0, 1, 2, 3}));
  std::vector<Buffer> buffers;
  for (int device = 0; device < 4; ++device) {
    const auto k = static_cast<float>(device);
    buffers.push_back(client.upload(bytes_of_values<float>({k, 10 * k}), DType::f32, {1, 2}, device).value());
  }
  std::vector<std::vector<const Buffer*>> arguments;
  for (const Buffer& buffer : buffers) arguments.push_back({&buffer});
  const std::vector<DeviceRun> runs = program.run(arguments).value();
  ASSERT_EQ(runs.size(), 4U);
  for (std::size_t device = 0; device < 4; ++device)
    EXPECT_EQ(floats(runs[device].outputs[0]), (device < 2 ? std::vector<float>{1, 10} : std::vector<float>{5, 50}))
        << device;
  EXPECT_EQ(program.run({arguments[0]}).error().kind, ErrorKind::invalid) << "one device's arguments of four";
}

TEST_P(XlaPluginCpu, ReplicasSumInGroups) {
  NEEDS(GetParam());
  constexpr const char* kReplicas = R"(
module @sum {
  func.func public @main(%a: tensor<1x2xf32>) -> tensor<1x2xf32> {
    %0 = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<1x2xf32>) -> tensor<1x2xf32>
    return %0 : tensor<1x2xf32>
  }
})";
  expect_sums_over_four(*it, kReplicas, {.replicas = 4, .devices = {0, 1, 2, 3}});
}

TEST_P(XlaPluginCpu, PartitionsInManualModeSumInGroups) {
  NEEDS(GetParam());
  constexpr const char* kManual = R"(
module @manual {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
        manual_axes={"x"} (%mine: tensor<1x2xf32>) {
      %1 = "stablehlo.all_reduce"(%mine) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
        : (tensor<1x2xf32>) -> tensor<1x2xf32>
      sdy.return %1 : tensor<1x2xf32>
    } : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
})";
  CompileOptions options;
  options.partitions = 4;
  options.spmd = options.shardy = true;
  options.devices = {0, 1, 2, 3};
  expect_sums_over_four(*it, kManual, options);
}

}  // namespace
}  // namespace systole::pjrt
