#pragma once
// Offers: what hardware is available, where, on which terms and at what price. An offer is one machine or one TPU slice
// in a zone; a job on four machines takes the same offer four times. Machines without accelerators are offers too, and
// so is the local machine, which is free.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/catalog/catalog.h"
#include "ground/catalog/tables.h"

namespace systole {

struct Offer {
  std::string machine;            // machine type; for a slice: its host's type; empty if the TPU API names none
  std::optional<TpuSlice> slice;  // if TPUs
  std::string accelerator;        // name of its catalog entry; empty: a CPU machine
  double accelerators = 0;        // per machine or slice
  std::string region, zone;       // zone empty: any in the region
  bool published = false;         // the vendor's pages list it in this zone
  Provisioning provisioning = Provisioning::on_demand;
  Price price;  // of the whole offer

  std::string name() const;  // "a3-highgpu-8g", "v5p-128", "n1-standard-4 + 2 x t4"
  std::string attached;      // " + 2 x t4" for attached accelerators; else empty
};

struct OfferFilter {
  std::vector<std::string> accelerators;  // catalog entries; empty: all
  std::vector<std::string> regions, zones;
  std::string machine;                      // a pattern, "a3-*"; empty: all
  std::optional<std::int64_t> max_chips;    // per offer
  std::optional<DollarsPerHour> max_price;  // excludes unknown prices
  std::vector<Provisioning> provisioning = {Provisioning::on_demand, Provisioning::own};
  bool cpu_machines = false;  // include machines without accelerators
};

// In table order. Leaves out terms on which a machine is not available. An offer without a known price is included,
// with an unknown price.
// Errors: not_found: an accelerator, region or zone missing from the catalog, with the nearest names; a name in the
// user's rows that does not exist.
Result<std::vector<Offer>> find_offers(CatalogTables& tables, const Catalog& catalog, const OfferFilter& filter);

// The local machine as an offer: $0, on own terms.
Offer own_machine(std::string name, const std::string& today);

// Stable sort by price, ascending; unknown prices last.
void sort_by_price(std::vector<Offer>& offers);

}  // namespace systole
