#include "ground/catalog/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "ground/catalog/catalog.h"

namespace systole {
namespace {

constexpr std::string_view kOf[] = {"machine", "gpu", "gpu_part", "chip"};
constexpr std::string_view kOffered[] = {"unknown", "no", "yes"};
constexpr std::string_view kRequired[] = {"per", "item", "region", "source", "date"};
constexpr std::string_view kOptional[] = {"count", "zones",      "slices",     "unit",   "on_demand",
                                          "spot",  "flex_start", "calendar",   "cud_1y", "cud_3y",
                                          "own",   "offered",    "confidence", "note"};
constexpr struct {
  std::string_view column;
  Provisioning terms;
} kCells[] = {{"on_demand", Provisioning::on_demand},
              {"spot", Provisioning::spot},
              {"flex_start", Provisioning::flex_start},
              {"calendar", Provisioning::calendar},
              {"cud_1y", Provisioning::commitment_1y},
              {"cud_3y", Provisioning::commitment_3y},
              {"own", Provisioning::own}};

const char* const kUnitHint = "$2.50/h, or 2.50 with unit: $/h; other currencies and months have to be converted";

Error negative(std::string_view column, std::string_view text) {
  return error(ErrorKind::invalid, "{}: a negative price, {}", column, text)
      .hinted("what is charged by the hour, above 0; 'unknown' where nobody knows it");
}

Error no_price(std::string_view column, std::string_view text) {
  return error(ErrorKind::invalid, "{}: '{}' is no price by the hour", column, text).hinted(kUnitHint);
}

// "88.49" if the row's unit is $/h, "$88.49/h", "unknown". Errors: invalid.
Result<PriceCell> parse_cell(std::string_view column, std::string_view text, bool unit) {
  if (text == "unknown") return PriceCell{true, std::nullopt};
  double amount = 0;
  if (text.starts_with('$')) {
    const Result<CatalogValue> value = parse_catalog_value(text);
    if (!value.ok() || value->unit != CatalogUnit::dollars_per_hour) {
      if (text.starts_with("$-")) return negative(column, text);
      return no_price(column, text);
    }
    amount = value->value;
  } else {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), amount);
    if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(amount))
      return no_price(column, text);
    if (amount < 0) return negative(column, text);
    if (!unit) return error(ErrorKind::invalid, "{}: '{}' has no unit", column, text).hinted(kUnitHint);
  }
  // Price lists fill gaps with 0, but nothing rented is free.
  if (amount == 0 && column != "own")
    return error(ErrorKind::invalid, "{}: a price of 0", column)
        .hinted("'unknown' where nobody knows it; what costs nothing is one's own: own: $0/h");
  return PriceCell{true, DollarsPerHour(amount)};
}

// Preference among rows, larger is better: user's rows, known amounts, equal counts, newer dates.
auto rank(const PriceRow& row, const PriceQuery& query) {
  return std::tuple(row.dated.own, row.cell(query.provisioning).amount.has_value(), row.count == query.count,
                    std::string_view(row.dated.date));
}

}  // namespace

const TableColumns kPriceColumns{"prices", kRequired, kOptional};

std::string_view name_of(PriceOf of) { return kOf[static_cast<int>(of)]; }

PriceRow read_price(TableRow& row) {
  PriceRow price;
  price.of = static_cast<PriceOf>(row.one_of("per", kOf));
  price.item = row.name("item");
  price.count = row.count("count").value_or(1);
  if (price.count < 1) row.wrong("count", error(ErrorKind::invalid, "a price of {} {}", price.count, price.item));
  price.region = row.string("region");
  price.zones = row.list("zones");
  price.slices = row.string("slices");
  const bool unit = row.has("unit");
  if (unit && row.text("unit") != "$/h")
    row.wrong("unit",
              error(ErrorKind::invalid, "prices are in $/h, and these in '{}'", row.text("unit")).hinted(kUnitHint));
  bool any = false;
  for (const auto& [column, terms] : kCells) {
    if (!row.has(column)) continue;
    any = true;
    const Result<PriceCell> cell = parse_cell(column, row.text(column), unit);
    if (cell.ok())
      price.cells[static_cast<std::size_t>(terms)] = *cell;
    else
      row.wrong(column, cell.error());
  }
  if (!any)
    row.wrong("on_demand", error(ErrorKind::invalid, "no price of {}", price.item)
                               .hinted("on_demand: $2.50/h, or on_demand: unknown where nobody knows it"));
  price.offered = static_cast<ListedAs>(row.one_of("offered", kOffered));
  price.dated = row.dated("item");
  price.note = row.string("note");
  return price;
}

std::string to_string(DollarsPerHour amount) {
  const double dollars = amount.count();
  return dollars != 0 && dollars < 0.1 ? fmt::format("${:.4f}/h", dollars) : fmt::format("${:.2f}/h", dollars);
}

std::string to_string(const Price& price) { return price.known() ? to_string(*price.amount) : "unknown"; }

bool costs_less(const Price& a, const Price& b) { return a.known() && (!b.known() || *a.amount < *b.amount); }

const PriceRow* find_price_row(std::span<const PriceRow* const> rows, const PriceQuery& query) {
  const PriceRow* best = nullptr;
  for (const PriceRow* row : rows) {
    if (row->of != query.of || row->item != query.item || row->slices != query.slices) continue;
    if (!row->region.empty() && row->region != query.region) continue;
    if (!query.zone.empty() && !row->zones.empty() && std::ranges::find(row->zones, query.zone) == row->zones.end())
      continue;
    if (!row->cell(query.provisioning).stated) continue;
    if (best == nullptr || rank(*row, query) > rank(*best, query)) best = row;
  }
  return best;
}

Price price_of(const PriceRow* row, const PriceQuery& query, std::string of) {
  Price price;
  price.of = std::move(of);
  price.region = query.region;
  price.provisioning = query.provisioning;
  if (row == nullptr) {
    price.note = "no list names its price";
    return price;
  }
  if (const auto& amount = row->cell(query.provisioning).amount)
    price.amount = *amount * (static_cast<double>(query.count) / static_cast<double>(row->count));
  price.dated = row->dated;
  price.note = row->note;
  return price;
}

Price sum(const Price& a, const Price& b) {
  Price both = a.dated.date <= b.dated.date ? a : b;
  both.of = a.of + " + " + b.of;
  both.amount = a.known() && b.known() ? std::optional(*a.amount + *b.amount) : std::nullopt;
  if (a.dated.source != b.dated.source) both.dated.source = a.dated.source + "; " + b.dated.source;
  if (a.known() != b.known()) both.note = a.known() ? b.note : a.note;
  return both;
}

}  // namespace systole
