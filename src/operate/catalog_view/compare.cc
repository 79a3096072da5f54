// `systole catalog compare A B ...`: one table, one dtype for all, with sources, and peak rate per dollar.

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/catalog/compare.h"
#include "operate/catalog_view/catalog_view.h"

namespace systole {
namespace {

constexpr const char* kUnknown = "unknown";

// "95.0 GiB [2]".
std::string fact_text(const CatalogEntry& chip, const std::string& key, SourceNotes& notes) {
  const auto found = chip.facts.find(key);
  if (found == chip.facts.end()) return kUnknown;
  const Fact& fact = found->second;
  const std::string value = fact.unit == CatalogUnit::bytes ? to_string(Bytes(static_cast<std::int64_t>(fact.value)))
                                                            : to_string(BytesPerSecond(fact.value));
  return value + " " + notes.note(fact.source, fact.date, kFactIsOldAfter);
}

std::string link_key(const CatalogEntry& chip) {
  if (chip.kind == "tpu") return "link.bandwidth";
  return chip.facts.contains("nvlink.bandwidth") ? "nvlink.bandwidth" : "pcie.bandwidth";
}

// All links of a chip in one direction: a TPU has two along each dim of its torus. `made_of`: "6 of 90.0 GB/s",
// "NVLink".
std::string links_text(const CatalogEntry& chip, SourceNotes& notes, std::string& made_of) {
  const std::string key = link_key(chip);
  const auto link = chip.facts.find(key);
  made_of = key == "nvlink.bandwidth" ? "NVLink" : key == "pcie.bandwidth" ? "PCIe" : "-";
  if (link == chip.facts.end() || key != "link.bandwidth") return fact_text(chip, key, notes);
  const auto dims = chip.facts.find("torus.dims");
  made_of = "each " + to_string(BytesPerSecond(link->second.value));
  if (dims == chip.facts.end()) return kUnknown;
  const double links = 2 * dims->second.value;
  made_of = fmt::format("{:g} of {}", links, to_string(BytesPerSecond(link->second.value)));
  return to_string(BytesPerSecond(link->second.value * links)) + " " +
         notes.note(link->second.source, link->second.date, kFactIsOldAfter);
}

std::string peak_text(const ComparedChip& one, SourceNotes& notes) {
  if (!one.peak) return kUnknown;
  const Fact& fact = *one.peak->fact;
  return fmt::format("{:g} TFLOP/s{} {}", one.peak->rate.count() / 1e12, one.peak->matrix ? "" : " (vector)",
                     notes.note(fact.source, fact.date, kFactIsOldAfter));
}

// One accelerator's cells, from the peak rate to the rate per dollar.
std::vector<std::string> column_of(const ComparedChip& one, SourceNotes& notes) {
  const CatalogEntry& chip = *one.chip;
  std::string made_of;
  std::vector<std::string> cells{peak_text(one, notes), fact_text(chip, "memory", notes),
                                 fact_text(chip, "memory.bandwidth", notes), links_text(chip, notes, made_of)};
  cells.push_back(made_of);
  if (one.offer) {
    const std::string& place = one.offer->zone.empty() ? one.offer->region : one.offer->zone;
    const char* const own = one.offer->provisioning == Provisioning::own ? " own" : "";
    cells.push_back(
        fmt::format("{}{} {}", to_string(*one.per_chip * Chips(1)), own, notes.price(one.offer->price.dated)));
    cells.push_back(one.offer->name());
    cells.push_back(place);
  } else {
    cells.insert(cells.end(), {kUnknown, one.offers == 0 ? "no offer on these terms" : "no list names a price", "-"});
  }
  cells.push_back(one.flops_per_dollar ? fmt::format("{:.0f} PFLOP", one.flops_per_dollar->count() / 1e15) : kUnknown);
  return cells;
}

std::string text_of(const std::vector<ComparedChip>& compared, const CompareOptions& options, const std::string& today,
                    int width) {
  SourceNotes notes(today, true);
  std::vector<std::string> headers{"of one chip"};
  std::vector<std::vector<std::string>> rows;
  for (const std::string& what : {options.dtype + ", dense", std::string("memory"), std::string("  bandwidth"),
                                  std::string("all links, one way"), std::string("  which are"), options.terms,
                                  std::string("  cheapest as"), std::string("  in"), std::string("$1 at peak")})
    rows.push_back({what});
  for (const ComparedChip& one : compared) {
    headers.push_back(one.chip->name);
    const std::vector<std::string> cells = column_of(one, notes);
    for (std::size_t i = 0; i < cells.size(); ++i) rows[i].push_back(cells[i]);
  }
  return table(std::move(headers), rows, width) + notes.text(width);
}

Node node_of(const ComparedChip& one, const std::string& today) {
  Node node = Node::map({{"accelerator", one.chip->name}});
  Node peak, price;
  if (one.peak) {
    peak = Node::map({{"flops_per_second", one.peak->rate.count()}, {"units", one.peak->matrix ? "matrix" : "vector"}});
    set_dated(peak, one.peak->fact->source, one.peak->fact->date, today, kFactIsOldAfter);
  }
  if (one.offer) {
    price = Node::map({{"dollars_per_chip_hour", one.per_chip->count()},
                       {"offer", one.offer->name()},
                       {"region", one.offer->region},
                       {"zone", one.offer->zone}});
    const Dated& dated = one.offer->price.dated;
    set_dated(price, dated.source, dated.date, today, kPriceIsOldAfter);
  }
  Node facts = Node::map();
  for (const std::string& key : {std::string("memory"), std::string("memory.bandwidth"), link_key(*one.chip)}) {
    const auto found = one.chip->facts.find(key);
    if (found == one.chip->facts.end()) continue;
    Node fact = Node::map({{"value", found->second.value}, {"unit", name_of(found->second.unit)}});
    set_dated(fact, found->second.source, found->second.date, today, kFactIsOldAfter);
    facts.set(key, std::move(fact));
  }
  if (link_key(*one.chip) == "link.bandwidth" && one.chip->facts.contains("torus.dims"))
    facts.set("links", 2 * one.chip->facts.at("torus.dims").value);
  return node.set("peak", std::move(peak))
      .set("facts", std::move(facts))
      .set("price", std::move(price))
      .set("flops_per_dollar", one.flops_per_dollar ? Node(one.flops_per_dollar->count()) : Node());
}

}  // namespace

Result<Shown> compare_accelerators(CatalogView& view, const CompareOptions& options, int width) {
  OfferFilter filter;
  const auto terms = std::ranges::find(kProvisioningNames, options.terms);
  filter.provisioning = {static_cast<Provisioning>(terms - kProvisioningNames), Provisioning::own};
  if (!options.region.empty()) filter.regions = {options.region};
  const std::vector<ComparedChip> compared =
      TRY(compare_chips(view.tables, view.catalog, options.names, options.dtype, filter));
  std::string text = text_of(compared, options, view.today, width);
  Node list = Node::sequence();
  for (const ComparedChip& one : compared) list.push(node_of(one, view.today));
  return Shown{std::move(text), Node::map({{"today", view.today},
                                           {"dtype", options.dtype},
                                           {"provisioning", options.terms},
                                           {"accelerators", std::move(list)}})};
}

}  // namespace systole
