#pragma once
// NVIDIA GPUs that are not there, described for XLA's compiler: a GpuTargetConfigProto, as text, made of a chip's
// facts.

#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/pjrt/named_value.h"

namespace systole::pjrt {

// Of one GPU, from its data sheet and NVIDIA's table of compute capabilities. Everything counts: the compiler chooses
// tiles and fusions by it, and says that a program does not fit by `memory`.
struct GpuFacts {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int capability_major = 0, capability_minor = 0;
  bool accelerated_features = false;  // code for this capability alone ("sm_90a"): wgmma
  int cores = 0;                      // streaming multiprocessors
  int fpus_per_core = 128;
  double clock_ghz = 0;
  Bytes memory, l2_cache;
  BytesPerSecond memory_bandwidth{};
  Bytes shared_memory_per_block{49152}, shared_memory_per_block_optin, shared_memory_per_core;
  int threads_per_core = 2048, registers_per_core = 65536;
};

struct GpuSlice {
  int slices = 1, hosts = 1, devices = 1;  // slices × hosts of a slice × GPUs of a host
};

// What Topology::create takes beside an empty name. REQUIRES: every number of `gpu` but the minor capability is more
// than 0, every one of `slice` at least 1; the name holds neither quotes nor line ends.
std::vector<NamedValue> gpu_topology_options(const GpuFacts& gpu, const GpuSlice& slice);

}  // namespace systole::pjrt
