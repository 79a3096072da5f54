#include "predict/plan/offer_builder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ground/catalog/hardware.h"

namespace systole {
namespace {

// The other terms of one machine: ", only by spot (from $2.25/h in us-central1-a) or flex_start (unknown)".
std::string other_terms(const std::map<Provisioning, const Offer*>& least) {
  std::string text;
  for (const auto& [terms, offer] : least) {
    const std::string price = offer->price.known() ? fmt::format("from {} in {}", to_string(*offer->price.amount),
                                                                 offer->zone.empty() ? offer->region : offer->zone)
                                                   : std::string("price unknown");
    text += fmt::format("{}{} ({})", text.empty() ? ", only by " : " or ", name_of(terms), price);
  }
  return text;
}

}  // namespace

std::optional<double> number_of(const CatalogEntry& entry, const char* key) {
  const auto found = entry.facts.find(key);
  return found == entry.facts.end() ? std::nullopt : std::optional(found->second.value);
}

Result<const std::vector<Offer>*> OfferBuilder::offers_with(const std::string& accelerator) {
  const auto known = offers_.find(accelerator);
  if (known != offers_.end()) return &known->second;
  OfferFilter filter;
  filter.accelerators = {accelerator};
  filter.provisioning = {Provisioning::on_demand,  Provisioning::own,      Provisioning::spot,
                         Provisioning::flex_start, Provisioning::calendar, Provisioning::reservation};
  return &(offers_[accelerator] = TRY(find_offers(tables_, catalog_, filter)));
}

Status OfferBuilder::price(const std::string& target, ClusterOffer& offer, const std::vector<const Offer*>& all,
                           double times) const {
  const auto allowed = [](const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
  };
  const Offer* best = nullptr;
  bool there = false;
  std::map<Provisioning, const Offer*> least;  // by terms
  std::set<std::string> regions, zones;
  for (const Offer* one : all) {
    regions.insert(one->region);
    if (allowed(rules_.regions, one->region)) zones.insert(one->zone);
    if (!allowed(rules_.regions, one->region) || !allowed(rules_.zones, one->zone)) continue;
    there = true;
    const auto of_terms = least.try_emplace(one->provisioning, one).first;
    if (costs_less(one->price, of_terms->second->price)) of_terms->second = one;
    if (one->provisioning != Provisioning::on_demand && one->provisioning != Provisioning::own) continue;
    if (best == nullptr || costs_less(one->price, best->price)) best = one;
  }
  const bool placed = !rules_.regions.empty() || !rules_.zones.empty();
  if (placed && !there) {
    const std::vector<std::string>& asked = rules_.zones.empty() ? rules_.regions : rules_.zones;
    const std::set<std::string>& have = rules_.zones.empty() || zones.empty() ? regions : zones;
    return error(ErrorKind::not_found, "--on {}: there is no {} in {}", target,
                 offer.target.substr(0, offer.target.find(':')), fmt::join(asked, ", "))
        .coded(ErrorCode::not_offered_there)
        .hinted(have.empty() ? "no region is known to have it" : fmt::format("it is in {}", fmt::join(have, ", ")));
  }
  if (best == nullptr) {
    offer.price.note = there ? "it is not had on demand" + other_terms(least) : "no list names it";
    return {};
  }
  offer.price = best->price;
  offer.zone = best->zone.empty() ? best->region : best->zone;
  if (offer.price.amount) {
    offer.price.amount = *offer.price.amount * times;
    offer.offered.price = offer.price.amount;
  }
  return {};
}

Result<ClusterOffer> OfferBuilder::of_machines(const std::string& target, const MachineType& type,
                                               std::int64_t machines) {
  const CatalogEntry& chip = *TRY(catalog_.find(type.accelerator));
  const auto each = static_cast<std::int64_t>(type.accelerators);
  if (static_cast<double>(each) != type.accelerators || each < 1)
    return error(ErrorKind::invalid, "--on {}: {} has {}, which trains nothing by itself", target, type.name,
                 type.accelerators_text())
        .hinted("a machine with whole accelerators: systole catalog machines --accelerator " + type.accelerator);
  ClusterOffer offer;
  ClusterOptions options;
  options.devices = machines * each;
  options.host = each;
  options.network = network_of_accelerator(type);
  offer.offered.cluster = TRY(cluster_of(chip, options));
  offer.accelerator = chip.name;
  offer.machine = type.name;
  offer.machines = machines;
  offer.chips = options.devices;
  offer.offered.name = type.host.empty()
                           ? fmt::format("{} x {} ({} {})", machines, type.name, offer.chips, chip.name)
                           : fmt::format("{} x ({} with {})", machines, type.host, type.accelerators_text());
  offer.target = type.host.empty() ? fmt::format("{}:{}", type.name, machines)
                                   : fmt::format("{}:{}@{}", chip.name, offer.chips, type.name);
  std::vector<const Offer*> same;
  for (const Offer& one : *TRY(offers_with(chip.name)))
    if (type.host.empty() ? one.machine == type.name && one.attached.empty()
                          : one.attached == " + " + type.accelerators_text())
      same.push_back(&one);
  TRY(price(target, offer, same, static_cast<double>(machines)));
  return offer;
}

Result<ClusterOffer> OfferBuilder::of_slices(const std::string& target, const TpuSlice& slice, std::int64_t slices) {
  const CatalogEntry& chip = *TRY(catalog_.find(slice.accelerator));
  ClusterOffer offer;
  ClusterOptions options;
  options.devices = slice.devices * slices;
  options.host = std::max<std::int64_t>(1, slice.devices / std::max<std::int64_t>(1, slice.hosts));
  options.torus = slice.shape;
  const auto dims = static_cast<std::size_t>(number_of(chip, "torus.dims").value_or(0));
  while (options.torus.size() < dims) options.torus.push_back(1);
  options.slices = slices;
  offer.offered.cluster = TRY(cluster_of(chip, options));
  offer.accelerator = chip.name;
  offer.machine = slice.machine;
  offer.machines = slice.hosts * slices;
  offer.chips = slice.chips * slices;
  offer.slice = slice;
  offer.slices = slices;
  offer.target = slice.by_shape() + (slices > 1 ? fmt::format(":{}", slices) : "");
  offer.offered.name = fmt::format("{}{} ({}, {} chip{})", slices > 1 ? fmt::format("{} x ", slices) : "",
                                   slice.by_shape(), slice.name, offer.chips, offer.chips == 1 ? "" : "s");
  // A slice costs its chips times the price of one; a shape without a name has the price of its family.
  std::vector<const Offer*> same;
  double times = static_cast<double>(slices);
  std::int64_t of = 0;
  for (const Offer& one : *TRY(offers_with(chip.name))) {
    if (!one.slice || (slice.usual && one.slice->name != slice.name)) continue;
    if (!slice.usual && of == 0) of = one.slice->chips;
    if (slice.usual || one.slice->chips == of) same.push_back(&one);
  }
  if (of > 0) times *= static_cast<double>(slice.chips) / static_cast<double>(of);
  TRY(price(target, offer, same, times));
  return offer;
}

// For chips of which the catalog lists no machine.
Result<ClusterOffer> OfferBuilder::of_chips_alone(const std::string& target, const CatalogEntry& chip,
                                                  std::int64_t count) const {
  const auto host = static_cast<std::int64_t>(number_of(chip, "host.devices").value_or(1));
  if (count > host && count % host != 0)
    return error(ErrorKind::invalid, "--on {}: {} comes {} to a machine, which {} is no multiple of", target, chip.name,
                 host, count)
        .hinted(fmt::format("{}:{}", chip.name, nearest_multiples(count, host)));
  ClusterOffer offer;
  ClusterOptions options;
  options.devices = count;
  options.host = std::min(host, count);
  offer.offered.cluster = TRY(cluster_of(chip, options));
  offer.offered.name = fmt::format("{} x {}", count, chip.name);
  offer.accelerator = chip.name;
  offer.machines = std::max<std::int64_t>(1, count / host);
  offer.chips = count;
  offer.target = fmt::format("{}:{}", chip.name, count);
  TRY(price(target, offer, {}, 1));
  return offer;
}

}  // namespace systole
