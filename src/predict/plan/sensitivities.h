#pragma once
// What of a choice would change with one thing done otherwise: its layout stays as it is.

#include "predict/plan/choice.h"

namespace systole {

struct Sensitivity {
  enum class Of { region, precision, recompute } of = Of::region;
  std::string what;  // "in europe-west4-b", "products in fp8", "recompute blocks"
  Seconds step, total;
  std::optional<Dollars> dollars;
  Bytes memory;
  bool fits = true;
  Offered offered;  // that was priced
};

struct SensitivitySearch {
  CatalogTables& tables;
  const Catalog& catalog;
  const OfferRules& rules;
  const Composer& composer;
  const ChoiceRequest& request;
};

// Of the chosen layout: the cheapest other regions, up to kOtherRegions; products in every other type that the chip has
// and, of a job in f32, in bf16; the other ways to recompute. Whether rules allow a region is not asked.
constexpr std::size_t kOtherRegions = 3;
std::vector<Sensitivity> sensitivities(const SensitivitySearch& search, const Estimated& chosen);

}  // namespace systole
