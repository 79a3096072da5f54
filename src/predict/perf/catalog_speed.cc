#include "predict/perf/catalog_speed.h"
#include "ground/base/number_from.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace systole {
namespace {

// Types in which chips multiply and our Programs do not.
bool is_foreign(std::string_view type) {
  constexpr std::string_view kForeign[] = {"tf32", "fp8", "int8", "fp4", "int4"};
  return std::ranges::find(kForeign, type) != std::end(kForeign);
}

// The rates of all facts "<prefix><type>", by type.
Result<std::map<DType, FlopRate>> rates_by_type(const CatalogEntry& entry, std::string_view prefix, double times) {
  std::map<DType, FlopRate> rates;
  for (const auto& [key, fact] : entry.facts) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view name = std::string_view(key).substr(prefix.size());
    if (is_foreign(name)) continue;
    const std::optional<DType> type = dtype_named(name);
    if (!type) return error(ErrorKind::invalid, "{} of {} is of no element type", key, entry.name).at(fact.where);
    rates[*type] = TRY(entry.flop_rate(key)) * times;
  }
  return rates;
}

// "attention.bf16" and "attention.bf16.elementary", by type.
Result<std::map<DType, AttentionSpeed>> attention_of(const CatalogEntry& entry, const std::string& prefix,
                                                     double times) {
  std::map<DType, AttentionSpeed> speeds;
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    const std::string key = prefix + std::string(name_of(dtype));
    if (!entry.facts.contains(key)) continue;
    const FlopRate products = TRY(entry.flop_rate(key)) * times;
    speeds[dtype] = {products, FlopRate(TRY(entry.per_second(key + ".elementary")) * times)};
  }
  return speeds;
}

Result<std::vector<CacheLevel>> caches_of(const CatalogEntry& entry, double times) {
  std::vector<CacheLevel> caches;
  for (const auto& [key, fact] : entry.facts) {
    if (!key.starts_with("cache.") || !key.ends_with(".size")) continue;
    const std::string level = key.substr(0, key.size() - std::string_view("size").size());
    CacheLevel cache{TRY(entry.bytes(key)) * times, TRY(entry.bytes_per_second(level + "bandwidth")) * times, {}};
    if (entry.facts.contains(level + "write")) cache.write = TRY(entry.bytes_per_second(level + "write")) * times;
    caches.push_back(cache);
  }
  std::ranges::sort(caches, {}, &CacheLevel::size);
  return caches;
}

// "product.bf16.nn" and "product.bf16.nn.elements", by type and layout.
Status read_products(const CatalogEntry& entry, double times, MachineSpeed& speed) {
  for (int d = 0; d < kNumDTypes; ++d) {
    for (int l = 0; l < kNumProductLayouts; ++l) {
      const auto dtype = static_cast<DType>(d);
      const auto layout = static_cast<ProductLayout>(l);
      const std::string key = fmt::format("product.{}.{}", name_of(dtype), name_of(layout));
      if (!entry.facts.contains(key)) continue;
      speed.products[{dtype, layout}] = {TRY(entry.flop_rate(key)) * times,
                                         FlopRate(TRY(entry.per_second(key + ".elements")) * times)};
    }
  }
  return {};
}

// A fact's key, split at dots: "kernel.layer_norm.bf16".
std::vector<std::string_view> parts_of(std::string_view key) {
  std::vector<std::string_view> parts;
  for (std::size_t dot = key.find('.'); dot != key.npos; dot = key.find('.')) {
    parts.push_back(key.substr(0, dot));
    key.remove_prefix(dot + 1);
  }
  parts.push_back(key);
  return parts;
}

// "step.bf16", "function.gelu_tanh", "kernel.layer_norm.bf16" with ".row".
Status read_kernels(const CatalogEntry& entry, double times, MachineSpeed& speed) {
  for (const auto& [key, fact] : entry.facts) {
    const std::vector<std::string_view> parts = parts_of(key);
    const bool function = parts[0] == "function" && parts.size() == 2, step = parts[0] == "step" && parts.size() == 2,
               kernel = parts[0] == "kernel" && parts.size() == 3;
    if (!function && !step && !kernel) continue;
    const FlopRate elements(TRY(entry.per_second(key)) * times);
    const std::optional<DType> dtype = dtype_named(parts.back());
    if (function) {
      speed.functions[std::string(parts[1])] = elements;
    } else if (!dtype) {
      return error(ErrorKind::invalid, "{} of {} is of no element type", key, entry.name).at(fact.where);
    } else if (step) {
      speed.steps[*dtype] = elements;
    } else {
      const std::string row = key + ".row";
      speed.kernels[{std::string(parts[1]), *dtype}] = {
          elements, entry.facts.contains(row) ? TRY(entry.seconds(row)) * (1 / times) : Seconds()};
    }
  }
  return {};
}

// "serving.product.f32.1024.16" (side, rows) with ".cached", and "serving.draw". Calibrations of before had no sides:
// theirs are passed over.
Status read_serving(const CatalogEntry& entry, double times, MachineSpeed& speed) {
  for (const auto& [key, fact] : entry.facts) {
    const std::vector<std::string_view> parts = parts_of(key);
    if (parts[0] != "serving" || parts.size() != 5 || parts[1] != "product" || parts[4] == "cached") continue;
    const std::optional<DType> dtype = dtype_named(parts[2]);
    const std::int64_t side = number_from(parts[3]).value_or(0), rows = number_from(parts[4]).value_or(0);
    if (!dtype || side < 1 || rows < 1)
      return error(ErrorKind::invalid, "{} of {} is of no element type, side and rows", key, entry.name).at(fact.where);
    speed.served[*dtype][side].push_back(
        {rows, FlopRate(TRY(entry.per_second(key)) * times), FlopRate(TRY(entry.per_second(key + ".cached")) * times)});
  }
  for (auto& [dtype, sides] : speed.served)
    for (auto& [side, products] : sides) std::ranges::sort(products, {}, &ServedProducts::rows);
  if (entry.facts.contains("serving.draw")) speed.draw = FlopRate(TRY(entry.per_second("serving.draw")));
  return {};
}

// No limit: only moving the bytes takes time.
const FlopRate kFree(std::numeric_limits<double>::infinity());

// If the maker states no rate for f32 or f16 products, the stated 16-bit rate bounds them. A chip without a bf16 rate
// has no bf16. The bounds stay out of `matmul`, because ratios are relative to stated rates only.
void bound_products(MachineSpeed& speed) {
  const auto half = speed.matmul.contains(DType::bf16) ? speed.matmul.find(DType::bf16) : speed.matmul.find(DType::f16);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto stated = speed.matmul.find(dtype);
    if (stated == speed.matmul.end() && (half == speed.matmul.end() || dtype == DType::bf16)) continue;
    const FlopRate rate = stated != speed.matmul.end() ? stated->second : half->second;
    speed.contraction.try_emplace(dtype, rate);
    for (auto* attention : {&speed.attention, &speed.attention_grad})
      attention->try_emplace(dtype, AttentionSpeed{rate, kFree});
  }
}

// The speed of one device of a chip, from the maker's facts.
Result<MachineSpeed> speed_of_chip(const CatalogEntry& entry) {
  const double devices = entry.facts.contains("devices") ? TRY(entry.number("devices")) : 1;
  if (!(devices >= 1)) return error(ErrorKind::invalid, "'{}' has {} devices", entry.name, devices);
  MachineSpeed speed;
  speed.name = devices == 1 ? entry.name : fmt::format("one of the {} devices of {}", devices, entry.name);
  speed.source = fmt::format("the catalog's {} of {}; what it does not state is bounded by memory bandwidth",
                             entry.name, entry.date());
  speed.matmul = TRY(rates_by_type(entry, "matmul.", 1 / devices));
  speed.memory = TRY(entry.bytes_per_second("memory.bandwidth")) * (1 / devices);
  bound_products(speed);
  speed.chain = speed.kernel = speed.elementary = kFree;
  if (entry.facts.contains("chain.f32")) speed.chain = FlopRate(TRY(entry.per_second("chain.f32")) / devices);
  if (entry.facts.contains("kernel.f32")) speed.kernel = TRY(entry.flop_rate("kernel.f32")) * (1 / devices);
  if (entry.facts.contains("elementary.f32"))
    speed.elementary = FlopRate(TRY(entry.per_second("elementary.f32")) / devices);
  if (entry.facts.contains("call")) speed.call = TRY(entry.seconds("call"));
  TRY(check(speed));
  return speed;
}

}  // namespace

Result<MachineSpeed> speed_of(const CatalogEntry& entry, int cores) {
  if (cores < 1) return error(ErrorKind::invalid, "a machine of {} cores", cores);
  if (entry.kind == "tpu" || entry.kind == "gpu") return speed_of_chip(entry);
  const double times = entry.per == "core" ? cores : 1;
  MachineSpeed speed;
  speed.name = times == 1 ? entry.name : fmt::format("{} × {}", cores, entry.name);
  speed.source = fmt::format("the catalog's {} of {}", entry.name, entry.date());
  speed.calibrated = entry.calibrated;
  speed.matmul = TRY(rates_by_type(entry, "matmul.", times));
  speed.contraction = TRY(rates_by_type(entry, "contraction.", times));
  speed.attention = TRY(attention_of(entry, "attention.", times));
  speed.attention_grad = TRY(attention_of(entry, "attention_grad.", times));
  speed.chain = FlopRate(TRY(entry.per_second("chain.f32")) * times);
  speed.kernel = TRY(entry.flop_rate("kernel.f32")) * times;
  speed.elementary = FlopRate(TRY(entry.per_second("elementary.f32")) * times);
  speed.memory = TRY(entry.bytes_per_second("memory.bandwidth")) * times;
  if (entry.facts.contains("memory.update")) speed.update = TRY(entry.bytes_per_second("memory.update")) * times;
  if (entry.facts.contains("memory.read")) {
    speed.memory = TRY(entry.bytes_per_second("memory.read")) * times;
    speed.write = TRY(entry.bytes_per_second("memory.write")) * times;
  }
  if (entry.facts.contains("serial")) speed.serial = TRY(entry.number("serial"));
  TRY(read_products(entry, times, speed));
  TRY(read_kernels(entry, times, speed));
  TRY(read_serving(entry, times, speed));
  speed.caches = TRY(caches_of(entry, times));
  speed.call = TRY(entry.seconds("call"));
  TRY(check(speed));
  return speed;
}

Result<LinkCost> link_of(const CatalogEntry& entry) {
  const LinkCost link{TRY(entry.seconds("link.latency")), TRY(entry.bytes_per_second("link.bandwidth"))};
  if (link.bandwidth <= BytesPerSecond()) return error(ErrorKind::invalid, "link.bandwidth of '{}' is 0", entry.name);
  return link;
}

Result<std::optional<LinkCost>> link_among(const CatalogEntry& entry, const std::string& transport,
                                           std::int64_t ranks) {
  const std::string prefix = "link." + transport + ".";
  std::int64_t best = 0;  // the largest number up to `ranks`, else the smallest
  for (const auto& [key, fact] : entry.facts) {
    if (!key.starts_with(prefix) || !key.ends_with(".latency")) continue;
    const std::int64_t among = std::atoll(key.c_str() + prefix.size());
    const bool better = best == 0 || (among <= ranks ? best > ranks || among > best : best > ranks && among < best);
    if (among > 0 && better) best = among;
  }
  if (best == 0) return std::optional<LinkCost>();
  const std::string key = fmt::format("{}{}.", prefix, best);
  const LinkCost link{TRY(entry.seconds(key + "latency")), TRY(entry.bytes_per_second(key + "bandwidth"))};
  if (link.bandwidth <= BytesPerSecond()) return error(ErrorKind::invalid, "{}bandwidth of '{}' is 0", key, entry.name);
  return std::optional(link);
}

}  // namespace systole
