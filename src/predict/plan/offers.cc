#include "predict/plan/offers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "ground/base/nearest.h"
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

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::int64_t> parse_number(std::string_view text, const std::string& target) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!all_digits(text) || failed != std::errc() || end != text.data() + text.size() || number < 1 ||
      number > kMostOfAnything)
    return error(ErrorKind::invalid, "--on {}: '{}' is no number from 1 to {}", target, text,
                 with_commas(kMostOfAnything))
        .hinted("h100:64, a3-highgpu-8g:8, v5p:4x4x4, v5p:4x4x4:2");
  return number;
}

class OfferMaker {
 public:
  OfferMaker(CatalogTables& tables, const Catalog& catalog, const OfferRules& rules)
      : tables_(tables), catalog_(catalog), rules_(rules), build_(tables, catalog, rules) {}

  Status open();
  Status add(const std::string& target);
  PlannedOffers take() { return std::move(found_); }

 private:
  Status add_any();
  Status add_chips(const std::string& target, const CatalogEntry& chip, std::int64_t count, std::string_view machine);
  Status add_slice(const std::string& target, const TpuSlice& slice, std::int64_t slices);
  Status add_tpu(const std::string& target, const CatalogEntry& chip, std::span<const std::string> rest);
  Status push(const std::string& target, PlannedOffer offer);
  Error unknown(const std::string& target, const std::string& name) const;
  Status check_places() const;

  CatalogTables& tables_;
  const Catalog& catalog_;
  const OfferRules& rules_;
  std::span<const MachineType> machines_;
  std::span<const TpuSlice> slices_;
  std::span<const ZoneRow> zones_;
  OfferBuilder build_;
  PlannedOffers found_;
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
  TRY(find_offers(tables_, catalog_, places));  // knows the places that there are
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

// In which machines: with as many chips as the chip's usual one has where that divides the count, else with the most
// that do. Of those that are dearer than another and joined no better none is taken.
Status OfferMaker::add_chips(const std::string& target, const CatalogEntry& chip, std::int64_t count,
                             std::string_view machine) {
  if (!machine.empty()) {
    const auto attached = std::ranges::find(machines_, machine, &MachineType::name);
    const MachineType* type = attached != machines_.end() && attached->accelerator == chip.name
                                  ? &*attached
                                  : TRY(machine_for(machines_, machine, chip.name));
    const auto each = static_cast<std::int64_t>(type->accelerators);
    if (each < 1 || count % each != 0)
      return error(ErrorKind::invalid, "--on {}: {} has {}, which {} is no multiple of", target, type->name,
                   type->accelerators_text(), count)
          .hinted(fmt::format("{}:{}", chip.name, nearest_multiples(count, std::max<std::int64_t>(1, each))));
    return push(target, TRY(build_.of_machines(target, *type, count / each)));
  }
  std::vector<const MachineType*> types = machines_with(machines_, chip.name);
  std::erase_if(types, [](const MachineType* t) { return t->accelerators < 1; });
  if (types.empty()) return push(target, TRY(build_.of_chips_alone(target, chip, count)));
  const auto usual = static_cast<std::int64_t>(number_of(chip, "host.devices").value_or(0));
  std::int64_t each = 0, least = kMostOfAnything;
  for (const MachineType* type : types) {
    const auto has = static_cast<std::int64_t>(type->accelerators);
    least = std::min(least, has);
    if (count % has == 0 && (has == usual || (each != usual && has > each))) each = has;
  }
  if (each == 0)
    return error(ErrorKind::invalid, "--on {}: {} comes {} to a machine at the least, which {} is no multiple of",
                 target, chip.name, least, count)
        .hinted(fmt::format("{}:{}", chip.name, nearest_multiples(count, least)));
  std::vector<PlannedOffer> offers;
  std::optional<Error> problem;
  for (const MachineType* type : types) {
    if (static_cast<std::int64_t>(type->accelerators) != each) continue;
    Result<PlannedOffer> offer = build_.of_machines(target, *type, count / each);
    if (offer.ok())
      offers.push_back(std::move(*offer));
    else if (!problem)
      problem = std::move(offer).error();
  }
  if (offers.empty()) return *problem;
  const auto beats = [](const PlannedOffer& a, const PlannedOffer& b) {
    if (!a.offered.price) return false;
    if (!b.offered.price) return a.offered.cluster.network >= b.offered.cluster.network;
    return *a.offered.price <= *b.offered.price && a.offered.cluster.network >= b.offered.cluster.network &&
           (*a.offered.price < *b.offered.price || a.offered.cluster.network > b.offered.cluster.network || &a < &b);
  };
  for (const PlannedOffer& one : offers)
    if (std::ranges::none_of(offers, [&](const PlannedOffer& other) { return &other != &one && beats(other, one); }))
      TRY(push(target, one));
  return {};
}

Status OfferMaker::add_tpu(const std::string& target, const CatalogEntry& chip, std::span<const std::string> rest) {
  const std::int64_t slices = rest.size() > 1 ? TRY(parse_number(rest[1], target)) : 1;
  if (!all_digits(rest[0])) return add_slice(target, TRY(find_tpu_slice(slices_, chip.name + ":" + rest[0])), slices);
  const std::int64_t chips = TRY(parse_number(rest[0], target));
  std::vector<std::int64_t> known;
  for (const TpuSlice& slice : slices_) {
    if (slice.accelerator != chip.name || !slice.usual) continue;
    if (slice.chips == chips) return add_slice(target, slice, slices);
    known.push_back(slice.chips);
  }
  std::ranges::sort(known, {}, [&](std::int64_t k) { return std::pair(std::abs(k - chips), k); });
  known.erase(std::ranges::unique(known).begin(), known.end());
  if (known.size() > 2) known.resize(2);
  return error(ErrorKind::invalid, "--on {}: {} has no slice of {} chips", target, chip.name, chips)
      .hinted(fmt::format("the nearest have {} chips: {}:{}", fmt::join(known, " and "), chip.name,
                          known.empty() ? 0 : known.front()));
}

Status OfferMaker::add_slice(const std::string& target, const TpuSlice& slice, std::int64_t slices) {
  return push(target, TRY(build_.of_slices(target, slice, slices)));
}

Status OfferMaker::push(const std::string& target, PlannedOffer offer) {
  if (offer.chips > rules_.chips_at_most)
    return error(ErrorKind::invalid, "--on {} has {} chips, and --chips-at-most allows {}", target,
                 with_commas(offer.chips), with_commas(rules_.chips_at_most))
        .hinted(fmt::format("--chips-at-most {}, or fewer of them", offer.chips));
  offer.offered.stack = rules_.stack;
  const Accelerator& chip = offer.offered.cluster.chip;
  bool any = false;
  for (const ProductType type : rules_.products) {
    if (!chip.products.contains(type)) continue;
    any = true;
    PlannedOffer one = offer;
    set_products(one.offered, type);
    if (type != ProductType::bf16 && type != ProductType::f32)
      one.offered.name += fmt::format(", products in {}", name_of(type));
    const auto same = [&](const PlannedOffer& other) {
      return other.target == one.target && other.offered.kernels.products == type;
    };
    if (std::ranges::none_of(found_.offers, same)) found_.offers.push_back(std::move(one));
  }
  if (any) return {};
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
  // What has no price, or is not in a place that is allowed, is not part of it.
  const auto take = [&](const std::string& accelerator, Result<PlannedOffer> offer) -> bool {
    if (offer.ok() && offer->offered.price) {
      const Status pushed = push("any", std::move(*offer));
      if (!pushed.ok() && pushed.error().kind == ErrorKind::unsupported) refuse(accelerator, pushed.error().message);
      return pushed.ok();
    }
    if (!offer.ok() && offer.error().message.find("there is no") == std::string::npos)
      refuse(accelerator, offer.error().message);
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

Error OfferMaker::unknown(const std::string& target, const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [key, one] : catalog_.entries()) {
    if (one.kind != "gpu" && one.kind != "tpu") continue;
    names.push_back(key);
    names.insert(names.end(), one.also.begin(), one.also.end());
  }
  const std::size_t accelerators = names.size();
  for (const MachineType& type : machines_)
    if (!type.accelerator.empty()) names.push_back(type.name);
  for (const TpuSlice& slice : slices_) names.push_back(slice.name);
  std::string hint = nearest_hint(name, names);
  if (hint.starts_with("valid:")) hint = nearest_hint(name, std::span(names).first(accelerators));
  return error(ErrorKind::not_found, "--on {}: no accelerator, machine or slice is called '{}'", target, name)
      .hinted(hint);
}

Status OfferMaker::add(const std::string& target) {
  if (target == "any" || target == "this") found_.this_machine = true;
  if (target == "any") return add_any();
  if (target == "this") return {};
  const std::size_t at = target.find('@');
  const std::vector<std::string> words = split(std::string_view(target).substr(0, at), ':');
  const std::string machine = at == target.npos ? "" : target.substr(at + 1);
  if (words[0].empty() || words.size() > 3)
    return error(ErrorKind::invalid, "--on '{}' is no accelerator, machine or slice with a number", target)
        .hinted("h100:64, a3-highgpu-8g:8, v5p:4x4x4, v5p-128, any");
  const Result<const CatalogEntry*> chip = catalog_.find_accelerator(words[0]);
  if (at != target.npos && (!chip.ok() || (*chip)->kind == "tpu"))
    return error(ErrorKind::invalid, "--on {}: '@{}' says in which machine GPUs are, and {} {}", target, machine,
                 words[0], chip.ok() ? "is a TPU, which comes in slices" : "is none")
        .hinted(target.substr(0, at));
  const auto slice = std::ranges::find_if(slices_, [&](const TpuSlice& s) { return s.name == words[0] && s.usual; });
  if (slice != slices_.end() && words.size() <= 2)
    return add_slice(target, *slice, words.size() > 1 ? TRY(parse_number(words[1], target)) : 1);
  const auto type = std::ranges::find(machines_, words[0], &MachineType::name);
  if (type != machines_.end() && !type->accelerator.empty() && type->kind != MachineKind::tpu && words.size() <= 2)
    return push(target,
                TRY(build_.of_machines(target, *type, words.size() > 1 ? TRY(parse_number(words[1], target)) : 1)));
  if (!chip.ok()) return unknown(target, words[0]);
  if (words.size() < 2)
    return error(ErrorKind::invalid, "--on {}: how many of them?", target)
        .hinted((*chip)->kind == "tpu" ? fmt::format("{}:16, or a shape", words[0]) : fmt::format("{}:8", words[0]));
  if ((*chip)->kind == "tpu") return add_tpu(target, **chip, std::span(words).subspan(1));
  if (words.size() > 2)
    return error(ErrorKind::invalid, "--on {}: '{}' after the number", target, words[2])
        .hinted(fmt::format("{}:{}", words[0], words[1]));
  return add_chips(target, **chip, TRY(parse_number(words[1], target)), machine);
}

}  // namespace

void set_products(Offered& offered, ProductType type) {
  offered.kernels.products = type;
  // Kernels that fuse attention are of 16 bits, and a Program in f32 has no copies in 16.
  offered.kernels.attention = in_32_bits(type) ? KernelChoice::Attention::unfused : KernelChoice::Attention::best;
  offered.kernels.half_copies = offered.stack.half_copies && !in_32_bits(type);
}

Result<PlannedOffers> planned_offers(CatalogTables& tables, const Catalog& catalog,
                                     std::span<const std::string> targets, const OfferRules& rules) {
  OfferMaker maker(tables, catalog, rules);
  TRY(maker.open());
  for (const std::string& several : targets)
    for (const std::string& target : split(several, ',')) TRY(maker.add(target));
  PlannedOffers found = maker.take();
  if (found.this_machine && found.offers.empty() && found.left_out.empty())
    return error(ErrorKind::invalid, "--on this: alone, this machine is planned for without --on")
        .hinted("systole plan JOB.yaml; or --on this,v5e:1");
  return found;
}

Result<NextSizes> next_sizes(CatalogTables& tables, const Catalog& catalog, const PlannedOffer& offer) {
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
