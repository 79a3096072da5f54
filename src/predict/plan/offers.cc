#include "predict/plan/offers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ground/base/counted.h"
#include "ground/base/units.h"
#include "ground/catalog/hardware.h"
#include "predict/plan/offer_builder.h"

namespace systole {
namespace {

constexpr std::int64_t kMostOfAnything = 1'000'000;

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(at, from), text.size());
    std::string_view part = text.substr(from, end - from);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    from = end + 1;
  }
  return parts;
}

class OfferMaker {
 public:
  OfferMaker(CatalogTables& tables, const Catalog& catalog, const OfferRules& rules)
      : tables_(tables), catalog_(catalog), rules_(rules), build_(tables, catalog, rules) {}

  Status open();
  Status add(const std::string& target);
  ClusterOffers take() { return std::move(found_); }

 private:
  Status add_any();
  Status add_machines(const std::string& target, const RequestedHardware& asked);
  Status push(const std::string& target, ClusterOffer offer);
  Status check_places() const;

  CatalogTables& tables_;
  const Catalog& catalog_;
  const OfferRules& rules_;
  std::span<const MachineType> machines_;
  std::span<const TpuSlice> slices_;
  std::span<const ZoneRow> zones_;
  OfferBuilder build_;
  ClusterOffers found_;
};

Status OfferMaker::open() {
  machines_ = TRY(tables_.machines());
  slices_ = TRY(tables_.slices());
  zones_ = TRY(tables_.zones());
  if (rules_.regions.empty() && rules_.zones.empty()) return {};
  OfferFilter places;
  places.regions = rules_.regions;
  places.zones = rules_.zones;
  places.accelerators = {zones_.front().accelerator};
  TRY(find_offers(tables_, catalog_, places));  // fails for unknown places
  return check_places();
}

Status OfferMaker::check_places() const {
  if (rules_.regions.empty()) return {};
  for (const std::string& zone : rules_.zones)
    for (const ZoneRow& row : zones_)
      if (row.zone == zone && std::ranges::find(rules_.regions, row.region) == rules_.regions.end())
        return error(ErrorKind::invalid, "--zone {} lies in {}, and --region allows {}", zone, row.region,
                     fmt::join(rules_.regions, ", "))
            .hinted(fmt::format("leave one of both out, or --region {}", row.region));
  return {};
}

// Leaves out machines that cost more than another and have no better network.
Status OfferMaker::add_machines(const std::string& target, const RequestedHardware& asked) {
  std::vector<ClusterOffer> offers;
  std::optional<Error> problem;
  for (const MachineType* type : asked.types) {
    Result<ClusterOffer> offer = build_.of_machines(target, *type, asked.machines);
    if (offer.ok())
      offers.push_back(std::move(*offer));
    else if (!problem)
      problem = std::move(offer).error();
  }
  if (offers.empty()) return *problem;
  const auto beats = [](const ClusterOffer& a, const ClusterOffer& b) {
    if (!a.offered.price) return false;
    if (!b.offered.price) return a.offered.cluster.network >= b.offered.cluster.network;
    return *a.offered.price <= *b.offered.price && a.offered.cluster.network >= b.offered.cluster.network &&
           (*a.offered.price < *b.offered.price || a.offered.cluster.network > b.offered.cluster.network || &a < &b);
  };
  for (const ClusterOffer& one : offers)
    if (std::ranges::none_of(offers, [&](const ClusterOffer& other) { return &other != &one && beats(other, one); }))
      TRY(push(target, one));
  return {};
}

Status OfferMaker::push(const std::string& target, ClusterOffer offer) {
  if (offer.chips > rules_.chips_at_most)
    return error(ErrorKind::invalid, "--on {} has {}, and --chips-at-most allows {}", target,
                 counted(offer.chips, "chip"), with_commas(rules_.chips_at_most))
        .hinted(fmt::format("--chips-at-most {}, or fewer of them", offer.chips));
  offer.offered.stack = rules_.stack;
  const Accelerator& chip = offer.offered.cluster.chip;
  bool any = false;
  for (const ProductType type : rules_.products) {
    if (!chip.products.contains(type) || (type == ProductType::bf16 && !chip.has_bf16 && !rules_.in_f16)) continue;
    any = true;
    ClusterOffer one = offer;
    set_products(one.offered, type);
    if (type != ProductType::bf16 && type != ProductType::f32)
      one.offered.name += fmt::format(", products in {}", name_of(type));
    const auto same = [&](const ClusterOffer& other) {
      return other.target == one.target && other.offered.kernels.products == type;
    };
    if (std::ranges::none_of(found_.offers, same)) found_.offers.push_back(std::move(one));
  }
  if (any) return {};
  if (!chip.has_bf16 && std::ranges::find(rules_.products, ProductType::bf16) != rules_.products.end())
    return error(ErrorKind::unsupported, "--on {}: {} has no bf16: of 16 bits it multiplies f16 alone", target,
                 chip.name)
        .hinted("--set train.precision=f32; or --set train.precision=f16, of which no gradient is scaled here");
  std::vector<const char*> asked;
  for (const ProductType type : rules_.products) asked.push_back(name_of(type));
  return error(ErrorKind::unsupported, "--on {}: nobody states how fast {} does products in {}", target, chip.name,
               fmt::join(asked, " or "))
      .hinted(in_32_bits(rules_.products.front()) ? "--set train.precision=bf16" : "--precision bf16");
}

Status OfferMaker::add_any() {
  std::set<std::string> refused;
  const auto refuse = [&](const std::string& accelerator, const std::string& why) {
    if (refused.insert(accelerator).second) found_.left_out.emplace_back(accelerator, why);
  };
  // `any` leaves out what has no price or lies outside the allowed places.
  const auto take = [&](const std::string& accelerator, Result<ClusterOffer> offer) -> bool {
    if (offer.ok() && offer->offered.price) {
      const Status pushed = push("any", std::move(*offer));
      if (!pushed.ok() && pushed.error().kind == ErrorKind::unsupported) refuse(accelerator, pushed.error().message);
      return pushed.ok();
    }
    if (!offer.ok() && offer.error().code != ErrorCode::not_offered_there) refuse(accelerator, offer.error().message);
    return false;
  };
  for (const MachineType& type : machines_) {
    if (type.accelerator.empty() || type.kind == MachineKind::tpu || type.accelerators < 1) continue;
    const auto each = static_cast<std::int64_t>(type.accelerators);
    for (std::int64_t machines = 1; machines * each <= rules_.chips_at_most; machines *= 2)
      if (!take(type.accelerator, build_.of_machines("any", type, machines))) break;
  }
  for (const TpuSlice& slice : slices_)
    if (slice.usual && slice.chips <= rules_.chips_at_most) take(slice.accelerator, build_.of_slices("any", slice, 1));
  if (!found_.offers.empty()) return {};
  if (!found_.left_out.empty())
    return error(ErrorKind::not_found, "--on any: all that is allowed is left out, for one {}",
                 found_.left_out.front().second)
        .hinted("without --region, --zone and --precision");
  return error(ErrorKind::not_found, "--on any: nothing that is allowed has a price")
      .hinted("without --region and --zone, or systole catalog prices");
}

Status OfferMaker::add(const std::string& target) {
  if (target == "any" || target == "this") found_.this_machine = true;
  if (target == "any") return add_any();
  if (target == "this") return {};
  const RequestedHardware asked = TRY(parse_hardware(catalog_, machines_, slices_, target, "--on"));
  if (asked.slice) return push(target, TRY(build_.of_slices(target, *asked.slice, asked.slices)));
  if (asked.types.empty()) return push(target, TRY(build_.of_chips_alone(target, *asked.chip, asked.chips)));
  return add_machines(target, asked);
}

}  // namespace

void set_products(HardwareOption& offered, ProductType type) {
  offered.kernels.products = type;
  // Fused attention kernels work in 16 bits, and a Program in f32 has no 16-bit copies.
  offered.kernels.attention = in_32_bits(type) ? KernelChoice::Attention::unfused : KernelChoice::Attention::best;
  offered.kernels.half_copies = offered.stack.half_copies && !in_32_bits(type);
}

Result<ClusterOffers> planned_offers(CatalogTables& tables, const Catalog& catalog,
                                     std::span<const std::string> targets, const OfferRules& rules) {
  OfferMaker maker(tables, catalog, rules);
  TRY(maker.open());
  for (const std::string& several : targets)
    for (const std::string& target : split(several, ',')) TRY(maker.add(target));
  ClusterOffers found = maker.take();
  if (found.this_machine && found.offers.empty() && found.left_out.empty())
    return error(ErrorKind::invalid, "--on this: alone, this machine is planned for without --on")
        .hinted("systole plan JOB.yaml; or --on this,v5e:1");
  return found;
}

Result<NextSizes> next_sizes(CatalogTables& tables, const Catalog& catalog, const ClusterOffer& offer) {
  NextSizes next;
  if (!offer.slice) {
    const std::size_t colon = offer.target.find(':'), at = offer.target.find('@');
    const std::string head = offer.target.substr(0, colon),
                      tail = at == offer.target.npos ? "" : offer.target.substr(at);
    const bool by_machine = head == offer.machine;
    const std::int64_t count = by_machine ? offer.machines : offer.chips;
    next.up = fmt::format("{}:{}{}", head, 2 * count, tail);
    if (offer.machines > 1 && offer.machines % 2 == 0) next.down = fmt::format("{}:{}{}", head, count / 2, tail);
    return next;
  }
  std::int64_t most = kMostOfAnything;
  if (const auto limit = number_of(*TRY(catalog.find(offer.accelerator)), "chips.max"))
    most = static_cast<std::int64_t>(*limit);
  const std::string times = offer.slices > 1 ? fmt::format(":{}", offer.slices) : "";
  const TpuSlice *below = nullptr, *above = nullptr;
  for (const TpuSlice& slice : TRY(tables.slices())) {
    if (slice.accelerator != offer.accelerator || !slice.usual || slice.chips > most) continue;
    if (slice.chips < offer.slice->chips && (below == nullptr || slice.chips > below->chips)) below = &slice;
    if (slice.chips > offer.slice->chips && (above == nullptr || slice.chips < above->chips)) above = &slice;
  }
  if (below != nullptr) next.down = below->by_shape() + times;
  if (above != nullptr) next.up = above->by_shape() + times;
  return next;
}

}  // namespace systole
