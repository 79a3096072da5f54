#pragma once
// Describes absent NVIDIA GPUs to XLA's compiler: a GpuTargetConfigProto, as text, from a chip's facts.

#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/pjrt/named_value.h"

namespace systole::pjrt {

// One GPU, from its data sheet and NVIDIA's table of compute capabilities. Every value matters: the compiler chooses
// tiles and fusions by them, and checks programs against `memory`.
struct GpuFacts {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int capability_major = 0, capability_minor = 0;
  bool accelerated_features = false;  // code for exactly this capability ("sm_90a"): wgmma
  int cores = 0;                      // streaming multiprocessors
  int fpus_per_core = 128;
  double clock_ghz = 0;
  Bytes memory, l2_cache;
  BytesPerSecond memory_bandwidth{};
  Bytes shared_memory_per_block{49152}, shared_memory_per_block_optin, shared_memory_per_core;
  int threads_per_core = 2048, registers_per_core = 65536;
};

struct GpuSlice {
  int slices = 1, hosts = 1, devices = 1;  // slices × hosts per slice × GPUs per host
};

// Options for Topology::create, with an empty name. REQUIRES: every number of `gpu` except the minor capability is
// positive, every one of `slice` at least 1; the name contains no quotes or line ends.
std::vector<NamedValue> gpu_topology_options(const GpuFacts& gpu, const GpuSlice& slice);

}  // namespace systole::pjrt
