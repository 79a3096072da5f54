#pragma once
// The same hardware in other sizes: what the next size up or down changes, and which size first meets the limits.

#include "predict/plan/choice.h"

namespace systole {

struct SizeOption {
  ClusterOffer offer;
  AloneResult alone;
};

// The inputs of a search over sizes. Borrows.
struct SizeSearch {
  CatalogTables& tables;
  const Catalog& catalog;
  const OfferRules& rules;
  const Composer& composer;
  const ChoiceRequest& request;
};

// The next size down and up, where they exist.
std::vector<SizeOption> other_sizes(const SizeSearch& search, const ClusterOffer& offer);

// The first larger size, at most six steps up, with a layout that fits and meets deadline and budget.
std::optional<SizeOption> size_that_meets(const SizeSearch& search, const ClusterOffer& offer);

}  // namespace systole
