#pragma once
// Offers: what can be had, where, on which terms and for how much. An offer is one machine, or one TPU slice, in a
// zone; a job that needs four machines takes the same offer four times. Machines without accelerators are offers like
// any other, and so is the machine at hand, which costs nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/catalog/catalog.h"
#include "ground/catalog/tables.h"

namespace systole {

struct Offer {
  std::string machine;            // its type; of a slice: of one of its hosts; empty where the TPU API names none
  std::optional<TpuSlice> slice;  // of TPUs
  std::string accelerator;        // its entry in the catalog; empty: a CPU machine
  double accelerators = 0;        // of the machine, or of the slice
  std::string region, zone;       // zone empty: any of the region
  bool published = false;         // the vendor's pages name the zone for it
  Provisioning provisioning = Provisioning::on_demand;
  Price price;  // of the whole offer

  std::string name() const;  // "a3-highgpu-8g", "v5p-128", "n1-standard-4 + 2 x t4"
  std::string attached;      // " + 2 x t4" of accelerators that are attached; else empty
};

struct OfferFilter {
  std::vector<std::string> accelerators;  // catalog entries; empty: all that there are
  std::vector<std::string> regions, zones;
  std::string machine;                      // a pattern, "a3-*"; empty: all
  std::optional<std::int64_t> max_chips;    // of one offer
  std::optional<DollarsPerHour> max_price;  // an unknown price is not below it
  std::vector<Provisioning> provisioning = {Provisioning::on_demand, Provisioning::own};
  bool cpu_machines = false;  // those without accelerators too
};

// In the order of the tables. Terms on which a machine cannot be had are left out; where its price is not known the
// offer is there, with an unknown price.
// Errors: not_found: an accelerator, region or zone that the catalog does not know, with the nearest names; a name in
// the user's rows that nothing has.
Result<std::vector<Offer>> find_offers(CatalogTables& tables, const Catalog& catalog, const OfferFilter& filter);

// The machine at hand as an offer: $0, on terms of its own.
Offer own_machine(std::string name, const std::string& today);

// The lowest price first and those that are not known last; equal ones stay in their order.
void sort_by_price(std::vector<Offer>& offers);

}  // namespace systole
