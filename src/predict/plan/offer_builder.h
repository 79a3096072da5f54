#pragma once
// Machines, slices or chips of the catalog as an offer to a plan: joined as its cluster, priced by its zones. offers.h
// reads the words that ask for them.

#include <map>

#include "predict/plan/offers.h"

namespace systole {

std::optional<double> number_of(const CatalogEntry& entry, const char* key);

// Borrows all that it is given. `target`: as it was asked for, for messages. Errors: as planned_offers.
class OfferBuilder {
 public:
  OfferBuilder(CatalogTables& tables, const Catalog& catalog, const OfferRules& rules)
      : tables_(tables), catalog_(catalog), rules_(rules) {}

  Result<PlannedOffer> of_machines(const std::string& target, const MachineType& type, std::int64_t machines);
  Result<PlannedOffer> of_slices(const std::string& target, const TpuSlice& slice, std::int64_t slices);
  // Of chips that the catalog has no machines for.
  Result<PlannedOffer> of_chips_alone(const std::string& target, const CatalogEntry& chip, std::int64_t count) const;

 private:
  Result<const std::vector<Offer>*> offers_with(const std::string& accelerator);
  // The lowest price of `all` that is allowed, `times` it, and its zone, into `offer`.
  Status price(const std::string& target, PlannedOffer& offer, const std::vector<const Offer*>& all,
               double times) const;

  CatalogTables& tables_;
  const Catalog& catalog_;
  const OfferRules& rules_;
  std::map<std::string, std::vector<Offer>> offers_;  // by accelerator, wherever they are
};

}  // namespace systole
