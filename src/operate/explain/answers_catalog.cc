#include <algorithm>
#include <set>

#include "ground/base/counted.h"
#include "ground/base/shell_quoted.h"
#include "ground/catalog/compare.h"
#include "ground/catalog/hardware.h"
#include "ground/catalog/offer.h"
#include "operate/explain/answers.h"
#include "operate/render/names.h"

namespace systole::answers {
namespace {

std::string dated(const TopicFacts& facts, std::string_view date) {
  return age_text(date, facts.today, kFactIsOldAfter);
}

// The price list of a price: "list of 2026-07-30, 115 days old".
std::string list_of(const TopicFacts& facts, const Dated& of) {
  return of.date.empty() ? "list without a date" : "list of " + age_text(of.date, facts.today, kPriceIsOldAfter);
}

// The hardware named in the workload; by default, machines with one GPU.
struct Hardware {
  OfferFilter filter;
  std::string slice;  // slice name; empty: machines
  bool named = false;
};

Result<Hardware> hardware_of(const TopicFacts& facts) {
  Hardware found;
  if (facts.workload != nullptr && !facts.workload->resources.accelerators.empty()) {
    const RequestedHardware asked =
        TRY(parse_hardware(*facts.catalog, TRY(facts.tables->machines()), TRY(facts.tables->slices()),
                           facts.workload->resources.accelerators, "resources.accelerators:"));
    found.named = true;
    if (asked.chip != nullptr) found.filter.accelerators = {asked.chip->name};
    if (asked.slice) found.slice = asked.slice->name;
    if (!asked.slice && asked.types.size() == 1) found.filter.machine = asked.types.front()->name;
    return found;
  }
  for (const auto& [name, entry] : facts.catalog->entries())
    if (entry.kind == "gpu") found.filter.accelerators.push_back(name);
  if (facts.workload != nullptr && !facts.workload->gcloud.machine.empty()) {
    found.filter.machine = facts.workload->gcloud.machine;
    found.named = true;
  } else {
    found.filter.max_chips = 1;
  }
  return found;
}

// Its offers on these terms, cheapest known price first.
Result<std::vector<Offer>> offers_of(const TopicFacts& facts, Hardware hardware, Provisioning terms) {
  hardware.filter.provisioning = {terms};
  std::vector<Offer> offers = TRY(find_offers(*facts.tables, *facts.catalog, hardware.filter));
  std::erase_if(offers, [&](const Offer& offer) {
    const bool other_slice = !hardware.slice.empty() && (!offer.slice || offer.slice->name != hardware.slice);
    return !offer.price.known() || other_slice || (!hardware.named && offer.accelerators != 1);
  });
  sort_by_price(offers);
  return offers;
}

std::string place_of(const Offer& offer) { return offer.zone.empty() ? offer.region : offer.zone; }

// "on demand": the catalog's name, with spaces.
std::string terms_text(Provisioning terms) {
  std::string text(name_of(terms));
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::string price_line(const TopicFacts& facts, const Offer& offer) {
  return fmt::format("{} in {}, {}: {} ({})", offer.name(), place_of(offer), terms_text(offer.provisioning),
                     to_string(*offer.price.amount), list_of(facts, offer.price.dated));
}

// The region of the workload's machines; empty: not given.
std::string region_of(const Workload* w) {
  if (w == nullptr) return "";
  const std::string& place = !w->gke.location.empty() ? w->gke.location : w->gcloud.zone;
  return is_gcp_zone(place) ? std::string(gcp_region_of(place)) : place;
}

void add_chips(const TopicFacts& facts, std::string_view kind, TopicAnswer& lines) {
  for (const auto& [name, entry] : facts.catalog->entries()) {
    if (entry.kind != kind) continue;
    std::string line = name;
    if (const std::optional<Peak> peak = peak_of(entry, "bf16"))
      line += fmt::format(": {} dense in bf16", to_string(peak->rate));
    else if (const std::optional<Peak> half = peak_of(entry, "f16"))
      line += fmt::format(": {} dense in f16", to_string(half->rate));
    else
      line += ": no dense peak of 16 bits is stated";
    if (const Result<Bytes> memory = entry.bytes("memory"); memory.ok()) line += ", " + to_string(*memory);
    lines.catalog.push_back(line + fmt::format(" ({})", dated(facts, entry.date())));
  }
}

void add_asked(const TopicFacts& facts, TopicAnswer& lines) {
  if (facts.workload == nullptr) return;
  const std::string& asked = facts.workload->resources.accelerators;
  lines.workload.push_back(asked.empty() ? "it names no accelerator: it runs on the hardware that is there"
                                         : "it names " + asked);
}

// The cheapest on-demand offer and its machine; no type: there is no offer.
struct CheapestOffer {
  Offer offer;
  const MachineType* type = nullptr;
};

Result<CheapestOffer> cheapest(const TopicFacts& facts) {
  const std::vector<Offer> offers = TRY(offers_of(facts, TRY(hardware_of(facts)), Provisioning::on_demand));
  CheapestOffer found;
  if (offers.empty()) return found;
  found.offer = offers.front();
  const std::span<const MachineType> machines = TRY(facts.tables->machines());
  if (found.offer.attached.empty())
    found.type = type_named(machines, found.offer.machine);
  else
    found.type = TRY(machine_for(machines, found.offer.machine, found.offer.accelerator, found.offer.accelerators));
  return found;
}

}  // namespace

Status peaks(const TopicFacts& facts, TopicAnswer& lines) {
  if (facts.workload == nullptr || facts.workload->resources.accelerators.empty()) return {};
  for (const std::string& name : TRY(hardware_of(facts)).filter.accelerators) {
    const CatalogEntry& chip = *TRY(facts.catalog->find(name));
    for (const std::string_view type : peak_types())
      if (const std::optional<Peak> peak = peak_of(chip, type))
        lines.catalog.push_back(fmt::format("{}: {} dense in {}{} ({})", name, to_string(peak->rate), type,
                                            peak->matrix ? "" : ", by its vector units",
                                            dated(facts, peak->fact->date)));
  }
  return {};
}

Status gpus(const TopicFacts& facts, TopicAnswer& lines) {
  add_asked(facts, lines);
  add_chips(facts, "gpu", lines);
  return {};
}

Status tpus(const TopicFacts& facts, TopicAnswer& lines) {
  add_asked(facts, lines);
  add_chips(facts, "tpu", lines);
  return {};
}

Status accelerators(const TopicFacts& facts, TopicAnswer& lines) {
  TRY(gpus(facts, lines));
  add_chips(facts, "tpu", lines);
  return {};
}

Status spot(const TopicFacts& facts, TopicAnswer& lines) {
  const Hardware hardware = TRY(hardware_of(facts));
  const std::vector<Offer> usual = TRY(offers_of(facts, hardware, Provisioning::on_demand));
  const std::vector<Offer> spots = TRY(offers_of(facts, hardware, Provisioning::spot));
  if (!usual.empty()) {
    const Offer& first = usual.front();
    lines.catalog.push_back(price_line(facts, first));
    const auto same = std::ranges::find_if(
        spots, [&](const Offer& offer) { return offer.name() == first.name() && place_of(offer) == place_of(first); });
    if (same != spots.end())
      lines.catalog.push_back(price_line(facts, *same) +
                              fmt::format(", {:.0f}% less", 100 * (1 - *same->price.amount / *first.price.amount)));
    else
      lines.catalog.emplace_back("its spot price there is unknown");
  } else {
    lines.catalog.emplace_back("no list has an on-demand price for it: unknown, which is not 0");
  }
  if (facts.workload == nullptr) return {};
  const Workload& w = *facts.workload;
  if (w.resources.provisioning != Provisioning::spot)
    lines.workload.emplace_back("it does not ask for spot machines");
  else if (w.has_model() && w.checkpoint.every.never())
    lines.workload.emplace_back(
        "it asks for spot machines and saves nothing before the end: a preemption loses the run");
  return {};
}

Status prices(const TopicFacts& facts, TopicAnswer& lines) {
  const Hardware hardware = TRY(hardware_of(facts));
  for (const Provisioning terms :
       {Provisioning::on_demand, Provisioning::spot, Provisioning::flex_start, Provisioning::commitment_1y}) {
    const std::vector<Offer> offers = TRY(offers_of(facts, hardware, terms));
    if (!offers.empty())
      lines.catalog.push_back("lowest: " + price_line(facts, offers.front()));
    else
      lines.catalog.push_back(fmt::format("{}: unknown", terms_text(terms)));
  }
  return {};
}

Status cost(const TopicFacts& facts, TopicAnswer& lines) {
  TRY(spot(facts, lines));
  if (facts.workload == nullptr) return {};
  const Workload& w = *facts.workload;
  lines.workload.push_back(w.objective.budget
                               ? fmt::format("it stops at its budget, {}", to_string(Dollars(*w.objective.budget)))
                               : "it has no budget: no cost stops it");
  if (!w.resources.longest)
    lines.workload.emplace_back("it sets no resources.longest: its cluster's own time limit applies");
  if (w.has_model())
    lines.workload.push_back(fmt::format("`systole plan {} --on any --objective cheapest` compares what is offered",
                                         shell_word(facts.workload_name)));
  return {};
}

Status storage(const TopicFacts& facts, TopicAnswer& lines) {
  const std::string region = region_of(facts.workload);
  std::set<std::string> listed;
  for (const StorageTier& tier : TRY(facts.tables->storage())) {
    if (!tier.price || (!region.empty() && tier.region != region)) continue;
    if (!listed.insert(tier.storage + tier.tier).second) continue;
    lines.catalog.push_back(fmt::format("{}, {}: ${:.4g} a GiB and month in {} ({})", tier.storage, tier.tier,
                                        tier.price->count(), tier.region, list_of(facts, tier.dated)));
  }
  if (lines.catalog.empty()) lines.catalog.push_back("no price of storage is known in " + region);
  if (facts.workload == nullptr) return {};
  for (const auto& [path, volume] : facts.workload->volumes)
    lines.workload.push_back(fmt::format("{} is a {} volume, {}", path, name_of(volume.kind),
                                         volume.of.empty() ? "of the machine" : volume.of));
  for (const auto& [path, claim] : facts.workload->claims)
    lines.workload.push_back(fmt::format("{} is the claim {}", path, claim));
  for (const std::string& file : facts.workload->data.train.files) lines.workload.push_back("it reads " + file);
  for (const MixtureSpec::Source& source : facts.workload->data.mixture.sources)
    for (const std::string& file : source.text.files)
      lines.workload.push_back(fmt::format("it reads {} ({})", file, source.name));
  return {};
}

Status network(const TopicFacts& facts, TopicAnswer& lines) {
  const CheapestOffer found = TRY(cheapest(facts));
  const Fabric* fabric = found.type == nullptr ? nullptr : fabric_of(TRY(facts.tables->fabrics()), *found.type);
  if (fabric == nullptr) {
    lines.catalog.emplace_back("no network is known for it");
    return {};
  }
  std::string line = fmt::format("{}: {}", found.offer.name(), fabric->transport);
  if (fabric->per_accelerator)
    line += fmt::format(", {} an accelerator between machines, one way", to_string(*fabric->per_accelerator));
  lines.catalog.push_back(line + fmt::format(" ({})", dated(facts, fabric->dated.date)));
  return {};
}

Status quota(const TopicFacts& facts, TopicAnswer& lines) {
  const CheapestOffer found = TRY(cheapest(facts));
  if (found.type == nullptr) {
    lines.catalog.emplace_back("no machine of it has a price");
    return {};
  }
  const Provisioning terms = facts.workload != nullptr
                                 ? facts.workload->resources.provisioning.value_or(Provisioning::on_demand)
                                 : Provisioning::on_demand;
  const QuotaOf of = found.offer.slice ? QuotaOf::tpu : QuotaOf::gpu;
  for (const QuotaRow* row :
       quotas_of(TRY(facts.tables->quotas()), of, found.offer.machine, found.offer.accelerator, terms))
    lines.catalog.push_back(fmt::format(
        "{} spends {}{}{} ({})", found.offer.name(), row->metric, row->global ? " of the project" : " of the region",
        row->usual.empty() ? "" : "; usually " + row->usual, dated(facts, row->dated.date)));
  if (lines.catalog.empty()) lines.catalog.push_back("no quota is known for " + found.offer.name());
  return {};
}

Status egress(const TopicFacts& facts, TopicAnswer& lines) {
  lines.catalog.emplace_back("it has no price of egress: what leaves a region is unknown, which is not 0");
  if (facts.workload == nullptr) return {};
  const std::string region = region_of(facts.workload);
  lines.workload.push_back(region.empty() ? "it names no region" : "its machines are in " + region);
  for (const auto& [path, volume] : facts.workload->volumes)
    if (volume.kind == VolumeSpec::Kind::bucket)
      lines.workload.push_back(fmt::format("{} is the bucket {}: keep it in that region", path, volume.of));
  return {};
}

}  // namespace systole::answers
