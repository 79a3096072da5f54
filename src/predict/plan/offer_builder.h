#pragma once
// Builds an offer from machines, slices or chips of the catalog: its cluster, and its price by zone. offers.h parses
// the words that ask for it.

#include <map>

#include "predict/plan/offers.h"

namespace systole {

std::optional<double> number_of(const CatalogEntry& entry, const char* key);

// Borrows its arguments. `target`: as it was asked for, for messages. Errors: as planned_offers.
class OfferBuilder {
 public:
  OfferBuilder(CatalogTables& tables, const Catalog& catalog, const OfferRules& rules)
      : tables_(tables), catalog_(catalog), rules_(rules) {}

  Result<ClusterOffer> of_machines(const std::string& target, const MachineType& type, std::int64_t machines);
  Result<ClusterOffer> of_slices(const std::string& target, const TpuSlice& slice, std::int64_t slices);
  // For chips of which the catalog lists no machine.
  Result<ClusterOffer> of_chips_alone(const std::string& target, const CatalogEntry& chip, std::int64_t count) const;

 private:
  Result<const std::vector<Offer>*> offers_with(const std::string& accelerator);
  // Sets the price of `offer` to the lowest allowed one of `all` times `times`, and its zone.
  Status price(const std::string& target, ClusterOffer& offer, const std::vector<const Offer*>& all,
               double times) const;

  CatalogTables& tables_;
  const Catalog& catalog_;
  const OfferRules& rules_;
  std::map<std::string, std::vector<Offer>> offers_;  // by accelerator, in all zones
};

}  // namespace systole
