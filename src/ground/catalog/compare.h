#pragma once
// Compares accelerators: dense peaks of one dtype, and work per dollar.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/catalog/offer.h"

namespace systole {

// The dtypes with stated peaks: "bf16", "f16", "tf32", "fp8", "int8", "fp4", "int4", "f32", "f64".
std::span<const std::string_view> peak_types();

struct Peak {
  FlopRate rate;
  bool matrix = true;  // of the matrix units; false: of the vector units, if the chip has no others for the type
  const Fact* fact = nullptr;
};
// None: the catalog has no dense peak of this type. The fact lives as long as the entry.
std::optional<Peak> peak_of(const CatalogEntry& chip, std::string_view type);

struct ComparedChip {
  const CatalogEntry* chip = nullptr;
  std::optional<Peak> peak;
  std::optional<Offer> offer;  // the lowest known price per chip; none: no offer, or none with a price
  std::size_t offers = 0;      // number of offers, priced or not
  std::optional<DollarsPerChipHour> per_chip;
  std::optional<FlopsPerDollar> flops_per_dollar;  // at peak; none if peak or price is unknown
};

// One per name, in order. The offers match `filter`, with its accelerators replaced by `names`.
// Errors: not_found: an accelerator, or as find_offers; invalid: a type without stated peaks.
Result<std::vector<ComparedChip>> compare_chips(CatalogTables& tables, const Catalog& catalog,
                                                std::span<const std::string> names, const std::string& type,
                                                OfferFilter filter);

}  // namespace systole
