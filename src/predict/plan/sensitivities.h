#pragma once
// What changes for a choice if one thing is done otherwise. The layout stays as it is.

#include "predict/plan/choice.h"

namespace systole {

struct Sensitivity {
  enum class Of { region, precision, recompute } of = Of::region;
  std::string what;  // "in europe-west4-b", "products in fp8", "recompute blocks"
  Seconds step, total;
  std::optional<Dollars> dollars;
  Bytes memory;
  bool fits = true;
  HardwareOption offered;  // the option that was priced
};

struct SensitivitySearch {
  CatalogTables& tables;
  const Catalog& catalog;
  const OfferRules& rules;
  const Composer& composer;
  const ChoiceRequest& request;
};

// For the chosen layout: up to kOtherRegions of the cheapest other regions; products in every other type of the chip
// and, for a job in f32, compute in bf16; the other kinds of recomputation. Regions are tried whatever the rules allow.
constexpr std::size_t kOtherRegions = 3;
std::vector<Sensitivity> sensitivities(const SensitivitySearch& search, const Estimated& chosen);

}  // namespace systole
