#include "predict/perf/machine_speed.h"

namespace systole {

const char* name_of(ProductLayout layout) {
  return layout == ProductLayout::nn ? "nn" : layout == ProductLayout::nt ? "nt" : "tn";
}

FlopRate matmul_rate(const MachineSpeed& speed, DType dtype) {
  if (const auto found = speed.matmul.find(dtype); found != speed.matmul.end()) return found->second;
  std::string known;
  for (const auto& [type, rate] : speed.matmul) known += (known.empty() ? "" : ", ") + std::string(name_of(type));
  fail(error(ErrorKind::not_found, "'{}' has no matmul rate for {} (it has {})", speed.name, name_of(dtype),
             known.empty() ? "none" : known)
           .hinted("calibrate the machine, or compute in a type that it has"));
}

FlopRate contraction_rate(const MachineSpeed& speed, DType dtype) {
  const auto found = speed.contraction.find(dtype);
  return found != speed.contraction.end() ? found->second : matmul_rate(speed, dtype);
}

AttentionSpeed attention_speed(const MachineSpeed& speed, DType dtype, bool gradient) {
  const auto& speeds = gradient ? speed.attention_grad : speed.attention;
  const auto found = speeds.find(dtype);
  return found != speeds.end() ? found->second : AttentionSpeed{matmul_rate(speed, dtype), speed.elementary};
}

BytesPerSecond bandwidth_for(const MachineSpeed& speed, Bytes bytes, Touch touch) {
  const auto known = [](BytesPerSecond own, BytesPerSecond other) { return own.count() > 0 ? own : other; };
  for (const CacheLevel& level : speed.caches) {
    if (bytes <= level.size) return touch == Touch::write ? known(level.write, level.bandwidth) : level.bandwidth;
  }
  if (touch == Touch::update) return known(speed.update, speed.memory);
  return touch == Touch::write ? known(speed.write, speed.memory) : speed.memory;
}

Status check(const MachineSpeed& speed) {
  auto wrong = [&](const std::string& what, double value) {
    return error(ErrorKind::invalid, "machine '{}': {} is {}, must be above zero", speed.name, what, value);
  };
  for (const auto& [dtype, rate] : speed.matmul) {
    if (!(rate.count() > 0)) return wrong(fmt::format("the matmul rate for {}", name_of(dtype)), rate.count());
  }
  for (const auto& [dtype, rate] : speed.contraction) {
    if (!(rate.count() > 0)) return wrong(fmt::format("the contraction rate for {}", name_of(dtype)), rate.count());
  }
  for (const auto* speeds : {&speed.attention, &speed.attention_grad}) {
    for (const auto& [dtype, attention] : *speeds) {
      for (const FlopRate rate : {attention.products, attention.elementary}) {
        if (!(rate.count() > 0)) return wrong(fmt::format("a rate of attention in {}", name_of(dtype)), rate.count());
      }
    }
  }
  if (!(speed.chain.count() > 0)) return wrong("the rate of chains", speed.chain.count());
  if (!(speed.kernel.count() > 0)) return wrong("the rate of kernels", speed.kernel.count());
  if (!(speed.elementary.count() > 0)) return wrong("the rate of elementary functions", speed.elementary.count());
  for (const auto& [key, product] : speed.products) {
    for (const FlopRate rate : {product.flops, product.elements}) {
      if (!(rate.count() > 0))
        return wrong(fmt::format("a rate of {} products in {}", name_of(key.second), name_of(key.first)), rate.count());
    }
  }
  for (const auto& [dtype, sides] : speed.served)
    for (const auto& [side, products] : sides)
      for (const ServedProducts& product : products)
        for (const FlopRate rate : {product.far, product.near})
          if (!(rate.count() > 0))
            return wrong(fmt::format("a rate of served products in {}", name_of(dtype)), rate.count());
  for (const auto& [dtype, rate] : speed.steps) {
    if (!(rate.count() > 0)) return wrong(fmt::format("the rate of steps in {}", name_of(dtype)), rate.count());
  }
  for (const auto& [op, rate] : speed.functions) {
    if (!(rate.count() > 0)) return wrong("the rate of " + op, rate.count());
  }
  for (const auto& [key, kernel] : speed.kernels) {
    if (!(kernel.elements.count() > 0)) return wrong("the rate of the kernel " + key.first, kernel.elements.count());
    if (!(kernel.row.count() >= 0))
      return error(ErrorKind::invalid, "machine '{}': a row of {} takes {} s", speed.name, key.first,
                   kernel.row.count());
  }
  if (!(speed.serial >= 0 && speed.serial <= 1))
    return error(ErrorKind::invalid, "machine '{}': serial is {}, must be from 0 to 1", speed.name, speed.serial);
  if (!(speed.write.count() >= 0)) return wrong("the memory's write bandwidth", speed.write.count());
  if (!(speed.memory.count() > 0)) return wrong("the memory bandwidth", speed.memory.count());
  if (!(speed.update.count() >= 0)) return wrong("the memory bandwidth of updates", speed.update.count());
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
