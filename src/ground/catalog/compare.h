#pragma once
// Accelerators side by side: the same dtype for all, dense, and what a dollar buys of it.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/catalog/offer.h"

namespace systole {

// "bf16", "f16", "tf32", "fp8", "int8", "fp4", "int4", "f32", "f64": what peaks are stated for.
std::span<const std::string_view> peak_types();

struct Peak {
  FlopRate rate;
  bool matrix = true;  // of the matrix units; else of the vector units, where a chip has no others for the type
  const Fact* fact = nullptr;
};
// None: the catalog states no dense peak of this type. The fact lives as long as the entry.
std::optional<Peak> peak_of(const CatalogEntry& chip, std::string_view type);

struct ComparedChip {
  const CatalogEntry* chip = nullptr;
  std::optional<Peak> peak;
  std::optional<Offer> offer;  // the one with the lowest known price a chip; none: there is no offer, or none is priced
  std::size_t offers = 0;      // that there are, priced or not
  std::optional<DollarsPerHour> per_chip;
  std::optional<double> flops_per_dollar;  // at peak; none where peak or price is not known
};

// One for each name, in their order; offers are those of `filter`, whose accelerators are replaced.
// Errors: not_found: an accelerator, or as find_offers; invalid: a type that no peak is stated for.
Result<std::vector<ComparedChip>> compare_chips(CatalogTables& tables, const Catalog& catalog,
                                                std::span<const std::string> names, const std::string& type,
                                                OfferFilter filter);

}  // namespace systole
