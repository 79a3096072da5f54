#include "predict/plan/sensitivities.h"

#include <algorithm>
#include <set>

#include "predict/plan/estimated.h"

namespace systole {
namespace {

class Sensitive {
 public:
  Sensitive(const SensitivitySearch& search, const Estimated& chosen)
      : search_(search), chosen_(chosen), offer_(search.request.offers[chosen.offer]) {}

  std::vector<Sensitivity> run() {
    regions();
    precisions();
    recomputes();
    return std::move(found_);
  }

 private:
  Bytes usable() const {
    return Bytes(
        static_cast<std::int64_t>(static_cast<double>(offer_.offered.cluster.chip.capacity.count()) * kUsableMemory));
  }

  void add(Sensitivity::Of of, std::string what, const Estimated& e, HardwareOption offered) {
    found_.push_back({of, std::move(what), Seconds(e.step.seconds), e.total, e.dollars, e.memory.total(),
                      e.memory.total() <= usable(), std::move(offered)});
  }

  // The step is the same in every region; the price is not.
  void regions() {
    const Result<std::span<const ZoneRow>> zones = search_.tables.zones();
    if (!zones.ok()) return;
    std::set<std::string> names;
    for (const ZoneRow& row : *zones)
      if (row.accelerator == offer_.accelerator) names.insert(row.region);
    std::vector<std::pair<DollarsPerHour, ClusterOffer>> others;
    for (const std::string& region : names) {
      OfferRules rules = search_.rules;
      rules.regions = {region};
      rules.zones.clear();
      rules.products = {offer_.offered.kernels.products};
      Result<ClusterOffers> there =
          planned_offers(search_.tables, search_.catalog, std::vector<std::string>{offer_.target}, rules);
      if (!there.ok() || there->offers.empty() || !there->offers.front().offered.price) continue;
      ClusterOffer& one = there->offers.front();
      if (one.zone == offer_.zone || offer_.zone.starts_with(region + "-")) continue;
      others.emplace_back(*one.offered.price, std::move(one));
    }
    std::ranges::stable_sort(others, {}, &std::pair<DollarsPerHour, ClusterOffer>::first);
    for (std::size_t i = 0; i < std::min(kOtherRegions, others.size()); ++i) {
      Estimated e = chosen_;
      const std::vector<OfferedStorage>& storages = offer_.offered.storages;
      const DollarsPerHour stored = storages.empty() ? DollarsPerHour() : storages[chosen_.storage].price;
      e.dollars = (others[i].first + stored) * e.total;
      add(Sensitivity::Of::region, "in " + others[i].second.zone, e, others[i].second.offered);
    }
  }

  void estimate(Sensitivity::Of of, std::string what, const Workload& asked, const Candidate& candidate,
                const HardwareOption& offered) {
    const Result<Estimated> e =
        estimate_candidate(asked, search_.composer, candidate, offered, wish_of(search_.request));
    if (e.ok()) add(of, std::move(what), *e, offered);
  }

  void precisions() {
    const Workload& asked = search_.composer.asked();
    if (asked.train.precision.compute == DType::f32 && offer_.offered.cluster.chip.has_bf16) {
      Workload half = asked;
      half.train.precision.compute = DType::bf16;
      HardwareOption other = offer_.offered;
      set_products(other, ProductType::bf16);
      estimate(Sensitivity::Of::precision, "computed in bf16", half, chosen_.candidate, other);
    }
    const bool wide = asked.train.precision.compute == DType::f32;
    for (const auto& [type, products] : offer_.offered.cluster.chip.products) {
      if (type == offer_.offered.kernels.products || type == ProductType::int8 || in_32_bits(type) != wide) continue;
      HardwareOption other = offer_.offered;
      set_products(other, type);
      estimate(Sensitivity::Of::precision, fmt::format("products in {}", name_of(type)), asked, chosen_.candidate,
               other);
    }
  }

  void recomputes() {
    using Kind = RecomputeSpec::Kind;
    constexpr std::pair<Kind, const char*> kAll[] = {
        {Kind::none, "recompute nothing"}, {Kind::attention, "recompute attention"}, {Kind::block, "recompute blocks"}};
    for (const auto& [kind, what] : kAll) {
      if (kind == chosen_.candidate.recompute) continue;
      Candidate other = chosen_.candidate;
      other.recompute = kind;
      estimate(Sensitivity::Of::recompute, what, search_.composer.asked(), other, offer_.offered);
    }
  }

  const SensitivitySearch& search_;
  const Estimated& chosen_;
  const ClusterOffer& offer_;
  std::vector<Sensitivity> found_;
};

}  // namespace

std::vector<Sensitivity> sensitivities(const SensitivitySearch& search, const Estimated& chosen) {
  return Sensitive(search, chosen).run();
}

}  // namespace systole
