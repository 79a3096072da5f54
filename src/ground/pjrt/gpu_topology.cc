// Field names: openxla/xla xla/stream_executor/device_description.proto (GpuTargetConfigProto, GpuDeviceInfoProto) and
// cuda/cuda_compute_capability.proto, as of 2026-06. Limits shared by all NVIDIA chips since 2016 are below: CUDA C++
// Programming Guide 13.0, "Technical Specifications per Compute Capability".

#include "ground/pjrt/gpu_topology.h"

#include "ground/base/error.h"

namespace systole::pjrt {
namespace {

constexpr int kThreadsPerBlock = 1024, kThreadsPerWarp = 32, kRegistersPerBlock = 65536;
constexpr long long kGridX = 2147483647, kGridY = 65535, kGridZ = 65535;

}  // namespace

std::vector<NamedValue> gpu_topology_options(const GpuFacts& gpu, const GpuSlice& slice) {
  CHECK(gpu.cores > 0 && gpu.fpus_per_core > 0 && gpu.clock_ghz > 0 && gpu.memory.count() > 0 &&
            gpu.l2_cache.count() > 0 && gpu.memory_bandwidth.count() > 0 && gpu.capability_major > 0 &&
            gpu.shared_memory_per_block.count() > 0 && gpu.shared_memory_per_block_optin.count() > 0 &&
            gpu.shared_memory_per_core.count() > 0 && gpu.threads_per_core > 0 && gpu.registers_per_core > 0,
        "a fact of '{}' is missing", gpu.name);
  CHECK(gpu.name.find_first_of("\"\\\n") == std::string::npos, "a GPU's name: {}", gpu.name);
  CHECK(slice.slices >= 1 && slice.hosts >= 1 && slice.devices >= 1, "{}x{}x{} GPUs", slice.slices, slice.hosts,
        slice.devices);
  std::string text = "gpu_device_info {\n";
  const auto field = [&](const char* name, auto value) { text += fmt::format("  {}: {}\n", name, value); };
  field("threads_per_block_limit", kThreadsPerBlock);
  field("threads_per_warp", kThreadsPerWarp);
  field("shared_memory_per_block", gpu.shared_memory_per_block.count());
  field("shared_memory_per_block_optin", gpu.shared_memory_per_block_optin.count());
  field("shared_memory_per_core", gpu.shared_memory_per_core.count());
  field("threads_per_core_limit", gpu.threads_per_core);
  field("core_count", gpu.cores);
  field("fpus_per_core", gpu.fpus_per_core);
  field("block_dim_limit_x", kGridX);
  field("block_dim_limit_y", kGridY);
  field("block_dim_limit_z", kGridZ);
  field("memory_bandwidth", static_cast<long long>(gpu.memory_bandwidth.count()));
  field("l2_cache_size", gpu.l2_cache.count());
  field("clock_rate_ghz", gpu.clock_ghz);
  field("device_memory_size", gpu.memory.count());
  text += fmt::format("  cuda_compute_capability {{ major: {} minor: {}{} }}\n", gpu.capability_major,
                      gpu.capability_minor, gpu.accelerated_features ? " feature_extension: ACCELERATED_FEATURES" : "");
  field("registers_per_core_limit", gpu.registers_per_core);
  field("registers_per_block_limit", kRegistersPerBlock);
  text += fmt::format("}}\nplatform_name: \"CUDA\"\ndevice_description_str: \"{}\"\n", gpu.name);
  return {{"topology", fmt::format("{}x{}x{}", slice.slices, slice.hosts, slice.devices)},
          {"target_config", std::move(text)}};
}

}  // namespace systole::pjrt
