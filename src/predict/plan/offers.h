#pragma once
// Parses the hardware that a person offers to a plan into clusters with prices:
//
//   h100:64                  so many chips, in the machines that hold them; each kind of machine that differs is an
//                            offer
//   h100:64@a3-highgpu-8g    in this machine
//   a3-highgpu-8g:8          so many machines
//   v5p:4x4x4  v5p-128       a slice by its shape or its name; with :2 behind it two, over the data-centre network
//   any                      everything with a price: 1, 2, 4, ... machines, every slice that has a name
//
// The price is the lowest on-demand price in the allowed zones ($0 for one's own machines). An unknown price stays
// unknown.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/catalog/offer.h"
#include "predict/plan/search.h"

namespace systole {

struct ClusterOffer {
  HardwareOption offered;
  std::string target;       // asks for this offer only: "a3-highgpu-8g:8", "v5p:4x4x4:2"
  std::string accelerator;  // its entry in the catalog
  std::string machine;      // empty: the catalog lists none
  std::int64_t machines = 1, chips = 1;
  std::optional<TpuSlice> slice;
  std::int64_t slices = 1;
  std::string zone;  // zone of the price; empty: none is known
  Price price;       // of all of it
};

struct OfferRules {
  std::vector<std::string> regions, zones;  // empty: everywhere
  std::int64_t chips_at_most = 16'384;
  StackProfile stack;
  std::vector<ProductType> products = {ProductType::bf16};  // each makes an offer of its own
  bool in_f16 = false;                                      // 16-bit compute is in f16, which chips without bf16 have
};

struct ClusterOffers {
  std::vector<ClusterOffer> offers;                           // as asked for, without duplicates
  std::vector<std::pair<std::string, std::string>> left_out;  // by `any`: accelerator, and why
  bool this_machine = false;                                  // `this` or `any` also asked for it
};

// Sets what depends on the type of products. REQUIRES: its stack is set.
void set_products(HardwareOption& offered, ProductType type);

// `targets`: each may hold several, separated by commas. Errors: not_found: no such accelerator, machine, slice, region
// or zone, with the nearest names; a region without the hardware, with the regions that have it; invalid: a shape or
// number that does not exist, with the nearest; rules that contradict each other or a target, with both; unsupported: a
// chip whose rate is unknown in a type that the rules name.
Result<ClusterOffers> planned_offers(CatalogTables& tables, const Catalog& catalog,
                                     std::span<const std::string> targets, const OfferRules& rules);

// The next smaller and larger target of the same machine or family of slices; empty: none.
struct NextSizes {
  std::string down, up;
};
Result<NextSizes> next_sizes(CatalogTables& tables, const Catalog& catalog, const ClusterOffer& offer);

}  // namespace systole
