#pragma once
// What a person offers to a plan, in words, as clusters with prices:
//
//   h100:64                  so many chips, in the machines that hold them; each kind of machine that differs is an
//   offer h100:64@a3-highgpu-8g    in this machine a3-highgpu-8g:8          so many machines v5p:4x4x4  v5p-128       a
//   slice by its shape or its name; with :2 behind it two, over the data-centre network any                      all
//   that has a price: 1, 2, 4, ... machines, every slice that has a name
//
// The price is the lowest on demand over the zones that are allowed (or $0 of machines of one's own). A price that
// nobody knows stays unknown.

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

struct PlannedOffer {
  Offered offered;
  std::string target;       // that asks for it and nothing else: "a3-highgpu-8g:8", "v5p:4x4x4:2"
  std::string accelerator;  // its entry in the catalog
  std::string machine;      // empty: the catalog knows none
  std::int64_t machines = 1, chips = 1;
  std::optional<TpuSlice> slice;
  std::int64_t slices = 1;
  std::string zone;  // where that price is paid; empty: in no zone that is known
  Price price;       // of all of it
};

struct OfferRules {
  std::vector<std::string> regions, zones;  // empty: everywhere
  std::int64_t chips_at_most = 16'384;
  StackProfile stack;
  std::vector<ProductType> products = {ProductType::bf16};  // each makes an offer of its own
  bool in_f16 = false;  // what computes in 16 bits does so in f16, which chips have that have no bf16
};

struct PlannedOffers {
  std::vector<PlannedOffer> offers;                           // as they were asked for, none twice
  std::vector<std::pair<std::string, std::string>> left_out;  // of `any`: accelerator, and why
  bool this_machine = false;                                  // `this` or `any`: beside them
};

// What goes with products in this type. REQUIRES: its stack is set.
void set_products(Offered& offered, ProductType type);

// `targets`: each may hold several, joined by commas. Errors: not_found: no such accelerator, machine, slice, region or
// zone, with the nearest names; a region without what was asked for, with those that have it; invalid: a shape or
// number that cannot be had, with the nearest; rules that contradict each other or a target, with both; unsupported: a
// chip whose rate in a type that rules name nobody knows.
Result<PlannedOffers> planned_offers(CatalogTables& tables, const Catalog& catalog,
                                     std::span<const std::string> targets, const OfferRules& rules);

// The targets that are the next size down and up of the same machine or family of slices; where there are none, empty.
struct NextSizes {
  std::string down, up;
};
Result<NextSizes> next_sizes(CatalogTables& tables, const Catalog& catalog, const PlannedOffer& offer);

}  // namespace systole
