#include "predict/plan/sizes.h"

namespace systole {
namespace {

constexpr int kMostStepsUp = 6;

// Nothing: the catalog or the rules have no such offer.
std::optional<ClusterOffer> offer_of(const SizeSearch& search, const std::string& target, ProductType products) {
  if (target.empty()) return std::nullopt;
  OfferRules rules = search.rules;
  rules.products = {products};
  Result<ClusterOffers> found = planned_offers(search.tables, search.catalog, std::vector<std::string>{target}, rules);
  if (!found.ok() || found->offers.empty()) return std::nullopt;
  if (search.request.add_storages) search.request.add_storages(found->offers.front());
  return std::move(found->offers.front());
}

bool meets(const ChoiceRequest& request, const Estimated& one) {
  if (request.deadline && one.total > *request.deadline) return false;
  return !request.budget || (one.dollars && *one.dollars <= *request.budget);
}

}  // namespace

std::vector<SizeOption> other_sizes(const SizeSearch& search, const ClusterOffer& offer) {
  std::vector<SizeOption> sizes;
  const Result<NextSizes> next = next_sizes(search.tables, search.catalog, offer);
  if (!next.ok()) return sizes;
  for (const std::string& target : {next->down, next->up})
    if (std::optional<ClusterOffer> other = offer_of(search, target, offer.offered.kernels.products)) {
      AloneResult alone = search_alone(search.composer, search.request, *other);
      sizes.push_back({std::move(*other), std::move(alone)});
    }
  return sizes;
}

std::optional<SizeOption> size_that_meets(const SizeSearch& search, const ClusterOffer& offer) {
  ClusterOffer at = offer;
  for (int step = 0; step < kMostStepsUp; ++step) {
    const Result<NextSizes> next = next_sizes(search.tables, search.catalog, at);
    if (!next.ok()) return std::nullopt;
    std::optional<ClusterOffer> larger = offer_of(search, next->up, offer.offered.kernels.products);
    if (!larger) return std::nullopt;
    at = std::move(*larger);
    AloneResult alone = search_alone(search.composer, search.request, at);
    if (alone.best && meets(search.request, *alone.best)) return SizeOption{std::move(at), std::move(alone)};
  }
  return std::nullopt;
}

}  // namespace systole
