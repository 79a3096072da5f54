// Compilers in vendors' plugins: libtpu and NVIDIA's, for absent devices.

#include "ground/pjrt/client.h"
#include "ground/pjrt/gpu_topology.h"
#include "ground/pjrt/hlo_module.h"
#include "ground/pjrt/testing/vendors_plugin.h"

namespace systole::pjrt {
namespace {

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
  // The compiler's own schedule: its fusions have estimated times.
  const HloModule module = read_hlo(executable.optimized().value()).value();
  std::string configs;
  for (const HloInstruction& instruction : module.computations.at(module.entry).instructions)
    configs += instruction.backend_config;
  EXPECT_NE(configs.find("estimated_cycles"), std::string::npos) << configs;
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

// The lowered form of a Systole Program: one device's body with explicit collectives.
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
  const HloModule module = read_hlo(executable.optimized().value()).value();
  const HloComputation& entry = module.computations.at(module.entry);
  EXPECT_FALSE(entry.instructions.empty());
  std::string opcodes;
  for (const auto& [id, computation] : module.computations) {
    for (const HloInstruction& instruction : computation.instructions) {
      opcodes += instruction.opcode + " ";
      if (instruction.opcode == "all-reduce") { EXPECT_EQ(instruction.shape.bytes(), Bytes(2 * 1024 * 4)); }
    }
  }
  EXPECT_NE(opcodes.find("all-reduce"), std::string::npos) << opcodes;
  EXPECT_NE(opcodes.find("parameter"), std::string::npos) << opcodes;
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

}  // namespace
}  // namespace systole::pjrt
