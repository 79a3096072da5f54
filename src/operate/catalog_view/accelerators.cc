// `systole catalog accelerators [NAME]`: chips and their dense peak rates; for one chip, every fact with its source and
// date.

#include <fmt/ranges.h>

#include "ground/base/counted.h"
#include "ground/catalog/compare.h"
#include "operate/catalog_view/catalog_view.h"

namespace systole {
namespace {

bool is_accelerator(const CatalogEntry& entry) { return entry.kind == "gpu" || entry.kind == "tpu"; }

// "989"; "9.3 v" for vector units; "-" if unknown.
std::string peak_text(const CatalogEntry& entry, std::string_view type) {
  const std::optional<Peak> peak = peak_of(entry, type);
  if (!peak) return "-";
  return fmt::format("{:g}{}", peak->rate.count() / 1e12, peak->matrix ? "" : "v");
}

std::string fact_text(const CatalogEntry& entry, const std::string& key, double unit) {
  const auto fact = entry.facts.find(key);
  return fact == entry.facts.end() ? "-" : fmt::format("{:.4g}", fact->second.value / unit);
}

std::string value_text(const Fact& fact) {
  switch (fact.unit) {
    case CatalogUnit::bytes: return to_string(Bytes(static_cast<std::int64_t>(fact.value)));
    case CatalogUnit::flop_rate: return fmt::format("{:g} TFLOP/s", fact.value / 1e12);
    case CatalogUnit::bytes_per_second: return to_string(BytesPerSecond(fact.value));
    case CatalogUnit::seconds: return to_string(Seconds(fact.value));
    case CatalogUnit::per_second: return fmt::format("{:g} G/s", fact.value / 1e9);
    case CatalogUnit::dollars: return to_string(Dollars(fact.value));
    case CatalogUnit::dollars_per_hour: return to_string(DollarsPerHour(fact.value));
    case CatalogUnit::number: break;
  }
  return fmt::format("{:g}", fact.value);
}

Node node_of(const CatalogEntry& entry, const std::string& today) {
  Node facts = Node::sequence();
  for (const auto& [key, fact] : entry.facts) {
    Node node = Node::map({{"key", key}, {"value", fact.value}, {"unit", name_of(fact.unit)}});
    set_dated(node, fact.source, fact.date, today, kFactIsOldAfter);
    facts.push(std::move(node));
  }
  Node also = Node::sequence();
  for (const std::string& name : entry.also) also.push(name);
  return Node::map({{"name", entry.name},
                    {"kind", entry.kind},
                    {"doc", entry.doc},
                    {"status", entry.status},
                    {"also", std::move(also)},
                    {"facts", std::move(facts)}});
}

std::string text_of(const CatalogEntry& entry, const std::string& today, int width) {
  SourceNotes notes(today);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, fact] : entry.facts)
    rows.push_back({key, value_text(fact), notes.note(fact.source, fact.date, kFactIsOldAfter)});
  std::string text = fmt::format("{}  {}; {}\n", entry.name, entry.doc, entry.status);
  if (!entry.also.empty()) text += fmt::format("also: {}\n", fmt::join(entry.also, ", "));
  return text + "\n" + table({"fact", "value>", "date and source"}, rows, width) + notes.text(width);
}

std::string list_text(const std::vector<const CatalogEntry*>& entries, const std::string& today, int width) {
  std::vector<std::vector<std::string>> rows;
  bool old = false;
  for (const CatalogEntry* entry : entries) {
    old = old || is_old(entry->date(), today, kFactIsOldAfter);
    rows.push_back({entry->name, entry->kind, fact_text(*entry, "memory", 0x1p30),
                    fact_text(*entry, "memory.bandwidth", 1e9), peak_text(*entry, "bf16"), peak_text(*entry, "f16"),
                    peak_text(*entry, "fp8"), peak_text(*entry, "int8"), peak_text(*entry, "f32"),
                    entry->date() + (is_old(entry->date(), today, kFactIsOldAfter) ? "*" : "")});
  }
  return table({"accelerator", "kind", "GiB>", "GB/s>", "bf16>", "f16>", "fp8>", "int8>", "f32>", "newest fact"}, rows,
               width) +
         "\nbf16 to f32: TFLOP/s (int8: TOP/s), dense, of a chip; v: of its vector units; -: not known, or none\n" +
         (old ? fmt::format("* old: more than {} before {}\n", counted(kFactIsOldAfter, "day"), today) : "") +
         "sources: systole catalog accelerators NAME\n";
}

}  // namespace

Result<Shown> show_accelerators(CatalogView& view, const std::string& name, const std::string& kind, int width) {
  std::vector<const CatalogEntry*> entries;
  if (!name.empty()) {
    entries.push_back(TRY(view.catalog.find_accelerator(name)));
  } else {
    for (const auto& [key, entry] : view.catalog.entries())
      if (is_accelerator(entry) && (kind.empty() || entry.kind == kind)) entries.push_back(&entry);
  }
  std::string text =
      name.empty() ? list_text(entries, view.today, width) : text_of(*entries.front(), view.today, width);
  Node list = Node::sequence();
  for (const CatalogEntry* entry : entries) list.push(node_of(*entry, view.today));
  return Shown{std::move(text), Node::map({{"today", view.today}, {"accelerators", std::move(list)}})};
}

}  // namespace systole
