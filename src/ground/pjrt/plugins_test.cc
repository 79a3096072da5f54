// With plugins as their vendors ship them. Each test is skipped where tools/xla-plugins has not put its plugin; CI has
// all but the GPU's. A plugin stays in the process, so each is loaded once.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "ground/pjrt/client.h"
#include "ground/pjrt/gpu_topology.h"
#include "ground/pjrt/places.h"
#include "ground/pjrt/topology.h"

namespace systole::pjrt {
namespace {

// Nothing where it is not there.
const Plugin* plugin(const std::string& name) {
  static std::map<std::string, Plugin> loaded;
  if (const auto at = loaded.find(name); at != loaded.end()) return &at->second;
  const Result<PluginPlace> place = find_plugin(name, plugins_folder());
  if (!place.ok()) return nullptr;
  prepare_environment(*place, true);
  return &loaded.emplace(name, Plugin::load(place->path).value()).first->second;
}

#define NEEDS(name)                      \
  const Plugin* const it = plugin(name); \
  if (it == nullptr) GTEST_SKIP() << "no plugin: tools/xla-plugins " << (name)

// Two ops: a product and a bend.
constexpr const char* kTwoOps = R"(
module @two_ops {
  func.func public @main(%a: tensor<256x512xbf16>, %b: tensor<512x128xbf16>) -> tensor<256x128xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<256x512xbf16>, tensor<512x128xbf16>) -> tensor<256x128xf32>
    %1 = stablehlo.tanh %0 : tensor<256x128xf32>
    return %1 : tensor<256x128xf32>
  }
})";

double cost(const Executable& executable, const std::string& name) {
  const std::vector<NamedValue> costs = executable.costs().value();
  const NamedValue* value = find(costs, name);
  return value == nullptr ? -1 : std::get<float>(value->value);
}

void expect_two_ops(const Executable& executable) {
  const MemoryStats memory = executable.memory().value();
  EXPECT_EQ(memory.arguments, Bytes(256 * 512 * 2 + 512 * 128 * 2));
  EXPECT_EQ(memory.outputs, Bytes(256 * 128 * 4));
  EXPECT_EQ(memory.aliased, Bytes(0));
  EXPECT_GE(memory.needed(), memory.arguments + memory.outputs);
  EXPECT_EQ(executable.replicas().value(), 1);
  EXPECT_EQ(executable.partitions().value(), 1);
  const OptimizedModule module = executable.optimized().value();
  EXPECT_EQ(module.format, "hlo_with_config");
  EXPECT_NE(module.bytes.find("two_ops"), std::string::npos);
  const std::vector<OutputType> outputs = executable.outputs().value();
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs[0].dtype, DType::f32);
  EXPECT_EQ(outputs[0].shape, (Shape{256, 128}));
}

TEST(XlaPluginTpu, CompilesForASliceThatIsNotThere) {
  NEEDS("tpu");
  EXPECT_GE(it->version(), (ApiVersion{0, 116}));
  EXPECT_TRUE(it->newest_stablehlo());
  const Topology slice = Topology::create(*it, "v5e:2x2").value();
  EXPECT_EQ(slice.platform().value(), "tpu");
  const std::vector<DeviceDescription> devices = slice.devices().value();
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[0].kind, "TPU v5 lite");
  ASSERT_NE(find(devices[3].attributes, "coords"), nullptr);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(find(devices[3].attributes, "coords")->value),
            (std::vector<std::int64_t>{1, 1, 0}));

  const Executable executable = slice.compile({.code = kTwoOps}, {}).value();
  expect_two_ops(executable);
  EXPECT_EQ(cost(executable, "flops"), 2.0 * 256 * 512 * 128);
  EXPECT_EQ(cost(executable, "transcendentals"), 256.0 * 128);
  EXPECT_GT(executable.serialized().value().size(), 1000U);
}

TEST(XlaPluginTpu, FourReplicasOfAnAllReduce) {
  NEEDS("tpu");
  const Topology slice = Topology::create(*it, "v5e:2x2").value();
  constexpr const char* kSum = R"(
module @sum {
  func.func public @main(%a: tensor<1024xf32>) -> tensor<1024xf32> {
    %0 = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<1024xf32>) -> tensor<1024xf32>
    return %0 : tensor<1024xf32>
  }
})";
  const Executable executable = slice.compile({.code = kSum}, {.replicas = 4, .devices = {0, 1, 2, 3}}).value();
  EXPECT_EQ(executable.replicas().value(), 4);
  EXPECT_NE(executable.optimized().value().bytes.find("all-reduce"), std::string::npos);
}

// What a Program of Systole's is lowered to: one device's body, its collectives written out.
TEST(XlaPluginTpu, FourPartitionsInManualMode) {
  NEEDS("tpu");
  const Topology slice = Topology::create(*it, "v5e:2x2").value();
  constexpr const char* kManual = R"(
module @manual {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<8x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<2x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>]
        manual_axes={"x"} (%mine: tensor<2x1024xf32>) {
      %1 = "stablehlo.all_reduce"(%mine) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
        : (tensor<2x1024xf32>) -> tensor<2x1024xf32>
      sdy.return %1 : tensor<2x1024xf32>
    } : (tensor<8x1024xf32>) -> tensor<2x1024xf32>
    return %0 : tensor<2x1024xf32>
  }
})";
  CompileOptions options;
  options.partitions = 4;
  options.spmd = options.shardy = true;
  options.devices = {0, 1, 2, 3};
  const Executable executable = slice.compile({.code = kManual}, options).value();
  EXPECT_EQ(executable.partitions().value(), 4);
  EXPECT_EQ(executable.memory().value().arguments, Bytes(2 * 1024 * 4)) << "of one device";
  EXPECT_NE(executable.optimized().value().bytes.find("all-reduce"), std::string::npos);
}

TEST(XlaPluginTpu, FlagsAreTheCompilers) {
  NEEDS("tpu");
  const Topology slice = Topology::create(*it, "v5e:2x2").value();
  CompileOptions options;
  options.flags = {{"xla_jf_spmd_threshold_for_windowed_einsum_mib", std::int64_t{1000000}}};
  EXPECT_TRUE(slice.compile({.code = kTwoOps}, options).ok());
  options.flags = {{"xla_no_such_flag", true}};
  const Result<Executable> unknown = slice.compile({.code = kTwoOps}, options);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("xla_no_such_flag"), std::string::npos) << unknown.error().message;
}

TEST(XlaPluginTpu, WhatDoesNotFitIsSaidByTheCompiler) {
  NEEDS("tpu");
  const Topology slice = Topology::create(*it, "v5e:2x2").value();
  const Result<Executable> large = slice.compile({.code = R"(
module @large {
  func.func public @main(%a: tensor<65536x65536xf32>, %b: tensor<65536x65536xf32>) -> tensor<65536x65536xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<65536x65536xf32>, tensor<65536x65536xf32>) -> tensor<65536x65536xf32>
    return %0 : tensor<65536x65536xf32>
  }
})"},
                                                 {});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().kind, ErrorKind::does_not_fit) << large.error().message;
  EXPECT_NE(large.error().message.find("RESOURCE_EXHAUSTED"), std::string::npos) << large.error().message;
}

TEST(XlaPluginTpu, BadInputIsTheParsersMessage) {
  NEEDS("tpu");
  const Result<Topology> unknown = Topology::create(*it, "v99:2x2");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("v99"), std::string::npos) << unknown.error().message;
  const Topology slice = Topology::create(*it, "v5e:2x2").value();
  const Result<Executable> bad = slice.compile({.code = "module {\n  func.func @main( {\n}"}, {});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().kind, ErrorKind::invalid);
  EXPECT_NE(bad.error().message.find("2:19: error: expected"), std::string::npos) << bad.error().message;
}

GpuFacts h100() {  // NVIDIA H100 SXM data sheet; CUDA C++ Programming Guide 13.0 for the limits of 9.0
  GpuFacts gpu;
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.capability_major = 9;
  gpu.accelerated_features = true;
  gpu.cores = 132;
  gpu.clock_ghz = 1.98;
  gpu.memory = Bytes(80'000'000'000);
  gpu.l2_cache = Bytes(50 << 20);
  gpu.memory_bandwidth = BytesPerSecond(3.35e12);
  gpu.shared_memory_per_block_optin = Bytes(227 << 10);
  gpu.shared_memory_per_core = Bytes(228 << 10);
  return gpu;
}

TEST(XlaPluginGpu, CompilesForEightH100sThatAreNotThere) {
  NEEDS("gpu");
  const Topology host = Topology::create(*it, "", gpu_topology_options(h100(), {.devices = 8})).value();
  EXPECT_EQ(host.devices().value().size(), 8U);
  const Executable executable = host.compile({.code = kTwoOps}, {}).value();
  expect_two_ops(executable);
  EXPECT_EQ(executable.costs().error().kind, ErrorKind::unsupported);
}

TEST(XlaPluginGpu, NoDeviceIsOneSentence) {
  NEEDS("gpu");
  const Result<Client> client = Client::create(*it);
  if (client.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(client.error().message.empty());
}

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

// state + rate · gradient, the state donated; the gradient twice, transposed.
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
  // Kept: the program works on a copy.
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
  const Result<std::vector<NamedValue>> costs = program.costs();  // some of these plugins have the function, not more
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

}  // namespace
}  // namespace systole::pjrt
