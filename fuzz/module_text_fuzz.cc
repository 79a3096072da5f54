// Any bytes as a StableHLO module: what is read of it before the compiler gets it has numbers of devices that are such.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "predict/prove/module_text.h"

using namespace systole;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto module = prove::look_at({reinterpret_cast<const char*>(data), size}, "fuzz.mlir");
  if (!module) return 0;
  for (const auto& count : {module->partitions, module->replicas}) {
    if (count && (*count < 1 || *count > 1'000'000)) std::abort();
  }
  const auto order = prove::compare_versions(module->writer, "StableHLO_v1.13.7");
  if (order && prove::compare_versions("StableHLO_v1.13.7", module->writer) != -*order) std::abort();
  return 0;
}
