#include "ground/catalog/offer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "ground/base/counted.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

Status known(const std::vector<std::string>& asked, const std::set<std::string>& all, const char* what) {
  for (const std::string& name : asked) {
    if (all.contains(name)) continue;
    const std::vector<std::string> names(all.begin(), all.end());
    return error(ErrorKind::not_found, "the catalog knows no {} '{}'", what, name).hinted(nearest_hint(name, names));
  }
  return {};
}

// v2 and v3 are sold as single hosts and as pods.
std::string class_of(const TpuSlice& slice) {
  if (slice.accelerator != "v2" && slice.accelerator != "v3") return "";
  return slice.hosts == 1 ? "device" : "pod";
}

class OfferFinder {
 public:
  OfferFinder(const OfferFilter& filter, const Catalog& catalog) : filter_(filter), catalog_(catalog) {}
  Status open(CatalogTables& tables);
  Status check() const;
  void add_accelerators();
  void add_cpu_machines();
  void add_own_machines();
  std::vector<Offer> take() { return std::move(offers_); }

 private:
  void add_of_zone(const ZoneRow& zone);
  void add_machine(const ZoneRow& zone, const MachineType& type);
  void add_attached(const ZoneRow& zone, const MachineType& type);
  void add_slice(const ZoneRow& zone, const TpuSlice& slice);
  // Adds `offer` once per requested term on which `type` is available, each with a price by `price`.
  template <typename PriceBy>
  void add_each(Offer offer, const MachineType* type, const PriceBy& price_by);
  std::int64_t most_chips(const std::string& accelerator) const;
  Price price(const PriceQuery& query, std::string of) const;
  bool wanted(const std::string& region, const std::string& zone) const {
    return among(filter_.regions, region) && among(filter_.zones, zone);
  }

  const OfferFilter& filter_;
  const Catalog& catalog_;
  std::span<const MachineType> machines_;
  std::span<const TpuSlice> slices_;
  std::span<const ZoneRow> zones_;
  std::span<const PriceRow> prices_;
  std::unordered_map<std::string, std::vector<const PriceRow*>> prices_of_;  // by item
  std::vector<Offer> offers_;
};

Status OfferFinder::open(CatalogTables& tables) {
  machines_ = TRY(tables.machines());
  slices_ = TRY(tables.slices());
  zones_ = TRY(tables.zones());
  prices_ = TRY(tables.prices());
  for (const PriceRow& row : prices_) prices_of_[row.item].push_back(&row);
  return {};
}

Status OfferFinder::check() const {
  std::set<std::string> regions, zones;
  for (const ZoneRow& row : zones_) {
    regions.insert(row.region);
    zones.insert(row.zone);
  }
  for (const PriceRow& row : prices_)
    if (!row.region.empty()) regions.insert(row.region);
  for (const MachineType& type : machines_) {
    regions.insert(type.zones.begin(), type.zones.end());
    zones.insert(type.zones.begin(), type.zones.end());
  }
  TRY(known(filter_.regions, regions, "region"));
  return known(filter_.zones, zones, "zone");
}

Price OfferFinder::price(const PriceQuery& query, std::string of) const {
  const auto rows = prices_of_.find(std::string(query.item));
  const PriceRow* row = rows == prices_of_.end() ? nullptr : find_price_row(rows->second, query);
  return price_of(row, query, std::move(of));
}

template <typename PriceBy>
void OfferFinder::add_each(Offer offer, const MachineType* type, const PriceBy& price_by) {
  if (filter_.max_chips && offer.accelerators > static_cast<double>(*filter_.max_chips)) return;
  if (!filter_.machine.empty() && !matches(filter_.machine, offer.machine)) return;
  for (const Provisioning terms : filter_.provisioning) {
    // The user's own machines are available on own terms only; all others never on own terms.
    const bool own = type != nullptr && !type->zones.empty();
    if (own != (terms == Provisioning::own) || (!own && type != nullptr && !type->had_by(terms))) continue;
    offer.provisioning = terms;
    offer.price = price_by(terms);
    if (filter_.max_price && (!offer.price.known() || *offer.price.amount > *filter_.max_price)) continue;
    offers_.push_back(offer);
  }
}

void OfferFinder::add_machine(const ZoneRow& zone, const MachineType& type) {
  Offer offer;
  offer.machine = type.name;
  offer.accelerator = type.accelerator;
  offer.accelerators = type.accelerators;
  offer.region = zone.region;
  offer.zone = zone.zone;
  offer.published = zone.published;
  add_each(offer, &type, [&](Provisioning terms) {
    return price({PriceOf::machine, type.name, zone.region, zone.zone, {}, 1, terms}, type.name);
  });
}

void OfferFinder::add_attached(const ZoneRow& zone, const MachineType& type) {
  Offer offer;
  offer.accelerator = type.accelerator;
  offer.accelerators = type.accelerators;
  offer.attached = " + " + type.accelerators_text();
  offer.region = zone.region;
  offer.zone = zone.zone;
  offer.published = zone.published;
  for (const MachineType& host : machines_) {
    const Result<const MachineType*> fits = machine_for(machines_, host.name, type.accelerator, type.accelerators);
    if (!host.accelerator.empty() || !matches(type.host, host.name) || !fits.ok()) continue;
    offer.machine = host.name;
    add_each(offer, &type, [&](Provisioning terms) {
      const auto count = static_cast<std::int64_t>(type.accelerators);
      return sum(
          price({PriceOf::machine, host.name, zone.region, zone.zone, {}, 1, terms}, host.name),
          price({PriceOf::gpu, type.accelerator, zone.region, zone.zone, {}, count, terms}, type.accelerators_text()));
    });
  }
}

// Tables list shapes up to the whole pod, more than one job can get.
std::int64_t OfferFinder::most_chips(const std::string& accelerator) const {
  const auto chip = catalog_.entries().find(accelerator);
  if (chip == catalog_.entries().end()) return std::numeric_limits<std::int64_t>::max();
  const auto most = chip->second.facts.find("chips.max");
  return most == chip->second.facts.end() ? std::numeric_limits<std::int64_t>::max()
                                          : static_cast<std::int64_t>(most->second.value);
}

void OfferFinder::add_slice(const ZoneRow& zone, const TpuSlice& slice) {
  const std::string of_class = class_of(slice);
  if (!zone.slices.empty() && zone.slices != of_class) return;
  if (slice.chips > most_chips(slice.accelerator)) return;
  Offer offer;
  offer.machine = slice.machine;
  offer.slice = slice;
  offer.accelerator = slice.accelerator;
  offer.accelerators = static_cast<double>(slice.chips);
  offer.region = zone.region;
  offer.zone = zone.zone;
  offer.published = zone.published;
  const auto host = std::ranges::find(machines_, slice.machine, &MachineType::name);
  add_each(offer, host == machines_.end() ? nullptr : &*host, [&](Provisioning terms) {
    return price({PriceOf::chip, slice.accelerator, zone.region, zone.zone, of_class, slice.chips, terms},
                 fmt::format("{} of {}", counted(slice.chips, "chip"), slice.accelerator));
  });
}

void OfferFinder::add_of_zone(const ZoneRow& zone) {
  for (const TpuSlice& slice : slices_) {
    const bool there =
        zone.machines.empty() || slice.machine.empty() ||
        std::ranges::any_of(zone.machines, [&](const std::string& pattern) { return matches(pattern, slice.machine); });
    if (slice.accelerator == zone.accelerator && there) add_slice(zone, slice);
  }
  for (const MachineType& type : machines_) {
    if (type.accelerator != zone.accelerator || type.kind == MachineKind::tpu || !type.zones.empty()) continue;
    const std::string& stands = type.host.empty() ? type.name : type.host;
    if (!std::ranges::any_of(zone.machines, [&](const std::string& pattern) { return matches(pattern, stands); }))
      continue;
    if (type.host.empty())
      add_machine(zone, type);
    else
      add_attached(zone, type);
  }
}

// Several sources may list a zone; the first one published by the vendor is used.
void OfferFinder::add_accelerators() {
  std::map<std::tuple<std::string, std::string, std::string>, const ZoneRow*> best;
  for (const ZoneRow& row : zones_) {
    const ZoneRow*& known_row = best[{row.accelerator, row.zone, row.slices}];
    if (known_row == nullptr || (row.published && !known_row->published)) known_row = &row;
  }
  for (const ZoneRow& row : zones_)
    if (best[{row.accelerator, row.zone, row.slices}] == &row && among(filter_.accelerators, row.accelerator) &&
        wanted(row.region, row.zone))
      add_of_zone(row);
}

void OfferFinder::add_cpu_machines() {
  std::set<std::pair<std::string, std::string>> seen;
  for (const MachineType& type : machines_) {
    if (type.kind != MachineKind::cpu || !type.zones.empty() || !filter_.zones.empty()) continue;
    const auto rows = prices_of_.find(type.name);
    if (rows == prices_of_.end()) continue;
    for (const PriceRow* row : rows->second) {
      if (row->offered == ListedAs::not_offered || !among(filter_.regions, row->region)) continue;
      if (!seen.insert({type.name, row->region}).second) continue;
      ZoneRow anywhere;
      anywhere.region = row->region;
      add_machine(anywhere, type);
    }
  }
}

void OfferFinder::add_own_machines() {
  for (const MachineType& type : machines_) {
    if (type.accelerator.empty() ? !filter_.cpu_machines : !among(filter_.accelerators, type.accelerator)) continue;
    for (const std::string& place : type.zones) {
      ZoneRow zone;
      zone.region = zone.zone = place;
      zone.published = true;
      if (wanted(zone.region, zone.zone)) add_machine(zone, type);
    }
  }
}

}  // namespace

std::string Offer::name() const { return slice ? slice->name : machine + attached; }

Result<std::vector<Offer>> find_offers(CatalogTables& tables, const Catalog& catalog, const OfferFilter& filter) {
  TRY(tables.check_own_names(catalog));
  OfferFilter resolved = filter;
  for (std::string& name : resolved.accelerators) name = TRY(catalog.find_accelerator(name))->name;
  OfferFinder finder(resolved, catalog);
  TRY(finder.open(tables));
  TRY(finder.check());
  finder.add_accelerators();
  if (resolved.cpu_machines) finder.add_cpu_machines();
  finder.add_own_machines();
  return finder.take();
}

Offer own_machine(std::string name, const std::string& today) {
  Offer offer;
  offer.machine = std::move(name);
  offer.published = true;
  offer.provisioning = offer.price.provisioning = Provisioning::own;
  offer.price.amount = DollarsPerHour(0);
  offer.price.of = offer.machine;
  offer.price.dated = {"the machine at hand", today, "high", {}, true};
  return offer;
}

void sort_by_price(std::vector<Offer>& offers) {
  std::ranges::stable_sort(offers, [](const Offer& a, const Offer& b) { return costs_less(a.price, b.price); });
}

}  // namespace systole
