#include "predict/perf/machine_speed.h"

namespace systole {

FlopRate matmul_rate(const MachineSpeed& speed, DType dtype) {
  if (const auto found = speed.matmul.find(dtype); found != speed.matmul.end()) return found->second;
  std::string known;
  for (const auto& [type, rate] : speed.matmul) known += (known.empty() ? "" : ", ") + std::string(name_of(type));
  fail(error(ErrorKind::not_found, "'{}' has no matmul rate for {} (it has {})", speed.name, name_of(dtype),
             known.empty() ? "none" : known)
           .hinted("calibrate the machine, or compute in a type that it has"));
}

FlopRate attention_rate(const MachineSpeed& speed, DType dtype) {
  const auto found = speed.attention.find(dtype);
  return found != speed.attention.end() ? found->second : matmul_rate(speed, dtype);
}

BytesPerSecond bandwidth_for(const MachineSpeed& speed, Bytes bytes) {
  for (const CacheLevel& level : speed.caches) {
    if (bytes <= level.size) return level.bandwidth;
  }
  return speed.memory;
}

Status check(const MachineSpeed& speed) {
  auto wrong = [&](const std::string& what, double value) {
    return error(ErrorKind::invalid, "machine '{}': {} is {}, must be above zero", speed.name, what, value);
  };
  for (const auto& [dtype, rate] : speed.matmul) {
    if (!(rate.count() > 0)) return wrong(fmt::format("the matmul rate for {}", name_of(dtype)), rate.count());
  }
  for (const auto& [dtype, rate] : speed.attention) {
    if (!(rate.count() > 0)) return wrong(fmt::format("the attention rate for {}", name_of(dtype)), rate.count());
  }
  if (!(speed.vector.count() > 0)) return wrong("the vector rate", speed.vector.count());
  if (!(speed.elementary.count() > 0)) return wrong("the rate of elementary functions", speed.elementary.count());
  if (!(speed.memory.count() > 0)) return wrong("the memory bandwidth", speed.memory.count());
  if (!(speed.call.count() >= 0)) return wrong("the time of a kernel call", speed.call.count());
  for (std::size_t i = 0; i < speed.caches.size(); ++i) {
    if (!(speed.caches[i].bandwidth.count() > 0))
      return wrong(fmt::format("the bandwidth of cache {}", i), speed.caches[i].bandwidth.count());
    if (i > 0 && speed.caches[i].size <= speed.caches[i - 1].size) {
      return error(ErrorKind::invalid, "machine '{}': cache {} is not larger than the one before it", speed.name, i);
    }
  }
  return {};
}

}  // namespace systole
