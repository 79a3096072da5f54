#pragma once
// The same hardware in other sizes: what one step up or down would change, and from which size on a limit is met.

#include "predict/plan/choice.h"

namespace systole {

struct SizeOption {
  PlannedOffer offer;
  AloneResult alone;
};

// Where offers come from, and what is searched on them. Borrows.
struct SizeSearch {
  CatalogTables& tables;
  const Catalog& catalog;
  const OfferRules& rules;
  const Composer& composer;
  const ChoiceRequest& request;
};

// The next size down and up, as far as they can be had.
std::vector<SizeOption> other_sizes(const SizeSearch& search, const PlannedOffer& offer);

// The first larger size, of at most six steps up, of which a layout fits and meets deadline and budget.
std::optional<SizeOption> size_that_meets(const SizeSearch& search, const PlannedOffer& offer);

}  // namespace systole
