#include "predict/perf/accelerator.h"

#include <string>

namespace systole {
namespace {

// Fraction of the peak reached by a chip without published measurements: the median of the chips with some
// (data/catalog/chips.yaml, reached.bf16 over matmul.bf16).
constexpr double kReached = 0.8;
// Fraction of memory bandwidth that a large copy reaches: 0.83 to 0.92 of what makers state on A100, H100 and MI250
// (BabelStream 5.0 on the vendors' own numbers); TPUs are similar (jax-ml/scaling-book, roofline.md).
constexpr double kMemoryReached = 0.85;

// bf16 passes for one f32 product (XLA's HIGHEST, docs.jax.dev: jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X6).
constexpr double kPassesOfF32 = 6;

Result<double> share(const CatalogEntry& entry, const std::string& key, double otherwise) {
  if (!entry.facts.contains(key)) return otherwise;
  const double value = TRY(entry.number(key));
  if (value > 0 && value <= 1) return value;
  return error(ErrorKind::invalid, "{} of '{}' is {}, no share above 0 and up to 1", key, entry.name, value)
      .at(entry.facts.at(key).where);
}

Result<std::optional<Accelerator::Products>> products_of(const CatalogEntry& entry, const std::string& type,
                                                         double devices) {
  if (!entry.facts.contains("matmul." + type)) return std::optional<Accelerator::Products>();
  Accelerator::Products products{TRY(entry.flop_rate("matmul." + type)) * (1 / devices), kReached};
  if (entry.kind == "tpu") products.reached = 1;
  const std::string key = "reached." + type;
  if (entry.facts.contains(key)) {
    const FlopRate reached = TRY(entry.flop_rate(key)) * (1 / devices);
    products.reached = reached / products.peak;
    if (!(products.reached > 0 && products.reached <= 1)) {
      return error(ErrorKind::invalid, "{} of '{}' is {}, more than its peak of {}", key, entry.name,
                   to_string(reached), to_string(products.peak))
          .at(entry.facts.at(key).where);
    }
  }
  return std::optional(products);
}

// Empty if the catalog has no f32 rate.
Result<std::optional<Accelerator::Products>> products_in_f32(const CatalogEntry& entry, double devices,
                                                             const Accelerator::Products& bf16) {
  if (entry.facts.contains("matmul.f32")) return products_of(entry, "f32", devices);
  if (entry.kind == "tpu") return std::optional(Accelerator::Products{bf16.peak * (1 / kPassesOfF32), bf16.reached});
  if (!entry.facts.contains("vector.f32")) return std::optional<Accelerator::Products>();
  return std::optional(Accelerator::Products{TRY(entry.flop_rate("vector.f32")) * (1 / devices), kReached});
}

Result<Accelerator::Attention> attention_of(const CatalogEntry& entry, const std::string& prefix,
                                            const Accelerator::Attention& otherwise) {
  return Accelerator::Attention{TRY(share(entry, prefix + ".forward", otherwise.forward)),
                                TRY(share(entry, prefix + ".backward", otherwise.backward)),
                                TRY(share(entry, prefix + ".narrow", otherwise.narrow))};
}

}  // namespace

const char* name_of(ProductType type) {
  static constexpr const char* kNames[] = {"bf16", "fp8", "int8", "fp4", "f32", "tf32"};
  return kNames[static_cast<std::size_t>(type)];
}

bool in_32_bits(ProductType type) { return type == ProductType::f32 || type == ProductType::tf32; }

Result<Accelerator> accelerator_of(const CatalogEntry& entry) {
  if (entry.kind != "gpu" && entry.kind != "tpu") {
    return error(ErrorKind::invalid, "'{}' is of kind {}, no accelerator", entry.name, entry.kind)
        .hinted("systole catalog accelerators lists those that there are");
  }
  const double devices = entry.facts.contains("devices") ? TRY(entry.number("devices")) : 1;
  if (!(devices >= 1)) return error(ErrorKind::invalid, "'{}' has {} devices", entry.name, devices);
  Accelerator chip;
  chip.name = entry.name;
  chip.tpu = entry.kind == "tpu";
  for (const ProductType type :
       {ProductType::bf16, ProductType::fp8, ProductType::int8, ProductType::fp4, ProductType::tf32}) {
    std::optional<Accelerator::Products> products = TRY(products_of(entry, name_of(type), devices));
    if (!products && type == ProductType::bf16) {
      products = TRY(products_of(entry, "f16", devices));
      chip.has_bf16 = !products;
    }
    if (products) chip.products[type] = *products;
  }
  if (!chip.products.contains(ProductType::bf16)) TRY(entry.flop_rate("matmul.bf16"));
  if (const auto f32 = TRY(products_in_f32(entry, devices, chip.products.at(ProductType::bf16))))
    chip.products[ProductType::f32] = *f32;
  chip.memory = TRY(entry.bytes_per_second("memory.bandwidth")) * (1 / devices);
  chip.memory_reached = kMemoryReached;
  chip.capacity = Bytes(static_cast<std::int64_t>(static_cast<double>(TRY(entry.bytes("memory")).count()) / devices));
  if (!chip.tpu && entry.facts.contains("cores")) chip.cores = static_cast<std::int64_t>(TRY(entry.number("cores")));
  if (entry.facts.contains("unit")) chip.unit = static_cast<std::int64_t>(TRY(entry.number("unit")));
  chip.attention = TRY(attention_of(entry, "fused_attention", {}));
  if (entry.facts.contains("flash_attention_2.forward"))
    chip.attention_2 = TRY(attention_of(entry, "flash_attention_2", chip.attention));
  return chip;
}

const Accelerator::Products& products_of(const Accelerator& chip, ProductType type) {
  const auto found = chip.products.find(type);
  return found != chip.products.end() ? found->second : chip.products.at(ProductType::bf16);
}

}  // namespace systole
