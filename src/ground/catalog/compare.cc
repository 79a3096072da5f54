#include "ground/catalog/compare.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ground/base/nearest.h"

namespace systole {
namespace {

constexpr std::string_view kTypes[] = {"bf16", "f16", "tf32", "fp8", "int8", "fp4", "int4", "f32", "f64"};

DollarsPerChipHour per_chip(const Offer& offer) { return *offer.price.amount / Chips(offer.accelerators); }

// Among offers with equal price per chip (to a millionth of a dollar): prefers a published zone, then the smallest
// offer.
bool is_better(const Offer& a, const Offer& b) {
  const auto key = [](const Offer& offer) {
    return std::tuple(std::llround(per_chip(offer).count() * 1e6), !offer.published, offer.accelerators);
  };
  return key(a) < key(b);
}

}  // namespace

std::span<const std::string_view> peak_types() { return kTypes; }

std::optional<Peak> peak_of(const CatalogEntry& chip, std::string_view type) {
  for (const bool matrix : {true, false}) {
    const auto fact = chip.facts.find((matrix ? "matmul." : "vector.") + std::string(type));
    if (fact != chip.facts.end() && fact->second.unit == CatalogUnit::flop_rate)
      return Peak{FlopRate(fact->second.value), matrix, &fact->second};
  }
  return std::nullopt;
}

Result<std::vector<ComparedChip>> compare_chips(CatalogTables& tables, const Catalog& catalog,
                                                std::span<const std::string> names, const std::string& type,
                                                OfferFilter filter) {
  if (std::ranges::find(kTypes, type) == std::end(kTypes)) {
    const std::vector<std::string> all(std::begin(kTypes), std::end(kTypes));
    return error(ErrorKind::invalid, "no peaks are stated of '{}'", type).hinted(nearest_hint(type, all));
  }
  std::vector<ComparedChip> compared;
  for (const std::string& name : names) {
    ComparedChip one;
    one.chip = TRY(catalog.find_accelerator(name));
    one.peak = peak_of(*one.chip, type);
    filter.accelerators = {one.chip->name};
    const std::vector<Offer> offers = TRY(find_offers(tables, catalog, filter));
    one.offers = offers.size();
    for (const Offer& offer : offers)
      if (offer.price.known() && (!one.offer || is_better(offer, *one.offer))) one.offer = offer;
    if (one.offer) one.per_chip = per_chip(*one.offer);
    if (one.peak && one.per_chip && *one.per_chip > DollarsPerChipHour(0))
      one.flops_per_dollar = one.peak->rate / *one.per_chip;
    compared.push_back(std::move(one));
  }
  return compared;
}

}  // namespace systole
