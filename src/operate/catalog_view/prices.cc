// `systole catalog prices`: hourly prices from price lists and from the user.

#include <algorithm>
#include <set>

#include "ground/base/nearest.h"
#include "operate/catalog_view/catalog_view.h"

namespace systole {
namespace {

// The columns, and their names in --json.
constexpr struct {
  Provisioning terms;
  const char* header;
} kColumns[] = {
    {Provisioning::on_demand, "demand>"}, {Provisioning::spot, "spot>"},         {Provisioning::flex_start, "flex>"},
    {Provisioning::calendar, "cal>"},     {Provisioning::commitment_1y, "1 y>"}, {Provisioning::commitment_3y, "3 y>"},
    {Provisioning::own, "own>"}};

std::string what_text(const PriceRow& row) {
  switch (row.of) {
    case PriceOf::machine: return row.item;
    case PriceOf::gpu: return fmt::format("+ {} x {}", row.count, row.item);
    case PriceOf::gpu_part: return fmt::format("{} x {} part", row.count, row.item);
    case PriceOf::chip: return fmt::format("{} chip{}", row.item, row.slices.empty() ? "" : ", " + row.slices);
  }
  return row.item;
}

std::string cell_text(const PriceCell& cell) {
  if (!cell.stated) return "-";
  if (!cell.amount) return "unknown";
  const double amount = cell.amount->count();
  return fmt::format("{:.{}f}", amount, amount != 0 && amount < 0.1 ? 4 : 2);
}

Node node_of(const PriceRow& row, const std::string& today) {
  Node zones = Node::sequence(), amounts = Node::map();
  for (const std::string& zone : row.zones) zones.push(zone);
  for (const auto& column : kColumns) {
    const PriceCell& cell = row.cell(column.terms);
    if (cell.stated) amounts.set(name_of(column.terms), cell.amount ? Node(cell.amount->count()) : Node("unknown"));
  }
  Node node = Node::map({{"per", name_of(row.of)},
                         {"item", row.item},
                         {"count", row.count},
                         {"region", row.region},
                         {"zones", std::move(zones)},
                         {"slices", row.slices},
                         {"dollars_per_hour", std::move(amounts)},
                         {"offered", row.offered == ListedAs::offered       ? "yes"
                                     : row.offered == ListedAs::not_offered ? "no"
                                                                            : "unknown"},
                         {"own", row.dated.own},
                         {"note", row.note}});
  set_dated(node, row.dated.source, row.dated.date, today, kPriceIsOldAfter);
  return node;
}

class PriceList {
 public:
  // Borrows all arguments.
  static Result<PriceList> create(const CatalogFilters& filters, const std::optional<double>& max_price,
                                  CatalogView& view) {
    PriceList list(filters, max_price);
    list.accelerator_ = TRY(asked_accelerator(view, filters.accelerator));
    if (list.accelerator_.empty()) return list;
    const std::span<const MachineType> machines = TRY(view.tables.machines());
    for (const MachineType* type : machines_with(machines, list.accelerator_)) {
      list.machines_.insert(type->name);
      list.attached_ = list.attached_ || (!filters.machine.empty() && attaches(machines, *type, filters.machine));
    }
    return list;
  }
  bool wanted(const PriceRow& row) const;
  Status check_places(CatalogView& view) const;

 private:
  PriceList(const CatalogFilters& filters, const std::optional<double>& max_price)
      : filters_(filters), max_price_(max_price) {}
  bool priced(const PriceRow& row) const;
  const CatalogFilters& filters_;
  const std::optional<double>& max_price_;
  std::string accelerator_;
  std::set<std::string> machines_;  // machines with the accelerator
  bool attached_ = false;           // it attaches to the requested machine: the price is a sum of two
};

// Whether one of its prices is known and at most --max-price.
bool PriceList::priced(const PriceRow& row) const {
  return std::ranges::any_of(
      row.cells, [&](const PriceCell& cell) { return cell.amount && *cell.amount <= DollarsPerHour(*max_price_); });
}

bool PriceList::wanted(const PriceRow& row) const {
  const CatalogFilters& f = filters_;
  const bool of_accelerator = row.item == accelerator_ || machines_.contains(row.item);
  const bool of_machine = row.of == PriceOf::machine && matches(f.machine, row.item);
  if (attached_ ? !of_accelerator && !of_machine
                : (!accelerator_.empty() && !of_accelerator) || (!f.machine.empty() && !of_machine))
    return false;
  if (!f.region.empty() && !row.region.empty() && row.region != f.region) return false;
  if (!f.zone.empty()) {
    const bool there = row.zones.empty() ? row.region.empty() || f.zone.starts_with(row.region + "-")
                                         : std::ranges::find(row.zones, f.zone) != row.zones.end();
    if (!there && row.region != f.zone) return false;
  }
  return !max_price_ || priced(row);
}

Status PriceList::check_places(CatalogView& view) const {
  const CatalogFilters& f = filters_;
  std::set<std::string> regions, zones, machines;
  for (const PriceRow& row : TRY(view.tables.prices())) {
    if (!row.region.empty()) regions.insert(row.region);
    if (row.of == PriceOf::machine) machines.insert(row.item);
  }
  for (const ZoneRow& row : TRY(view.tables.zones())) {
    regions.insert(row.region);
    zones.insert(row.zone);
  }
  zones.insert(regions.begin(), regions.end());
  const auto check = [](const std::string& asked, const std::set<std::string>& known, const char* what) -> Status {
    if (asked.empty() || std::ranges::any_of(known, [&](const std::string& name) { return matches(asked, name); }))
      return {};
    const std::vector<std::string> names(known.begin(), known.end());
    return error(ErrorKind::not_found, "no price names the {} '{}'", what, asked).hinted(nearest_hint(asked, names));
  };
  TRY(check(f.region, regions, "region"));
  TRY(check(f.zone, zones, "zone"));
  return check(f.machine, machines, "machine");
}

// Price lists have on-demand prices also for machines that are not available on demand.
bool is_not_had(const PriceRow& row, Provisioning terms, std::span<const MachineType> machines) {
  if (terms != Provisioning::on_demand || row.of != PriceOf::machine || !row.cell(terms).amount) return false;
  const auto type = std::ranges::find(machines, row.item, &MachineType::name);
  return type != machines.end() && !type->had_by(terms);
}

std::string text_of(const std::vector<const PriceRow*>& found, std::span<const MachineType> machines,
                    SourceNotes& notes, int width) {
  std::vector<std::string> headers{"what", "region"};
  std::vector<std::vector<std::string>> rows;
  for (const PriceRow* row : found) rows.push_back({what_text(*row), row->region.empty() ? "everywhere" : row->region});
  for (const auto& column : kColumns) {
    const auto stated = [&](const PriceRow* row) { return row->cell(column.terms).stated; };
    if (std::ranges::none_of(found, stated)) continue;
    headers.emplace_back(column.header);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i].push_back((is_not_had(*found[i], column.terms, machines) ? "^" : "") +
                        cell_text(found[i]->cell(column.terms)));
  }
  headers.emplace_back("source");
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(notes.price(found[i]->dated));
  return table(std::move(headers), rows, width);
}

const char* const kLegend =
    "\n$ by the hour without tax; flex: flex-start; cal: calendar; 1 y, 3 y: committed for so long\n"
    "-: the list says nothing; ^: listed, but the machine is not had on demand\n"
    "part: the GPUs of a machine without the machine\n";

// This machine, for free.
PriceRow at_hand(const std::string& today) {
  PriceRow row;
  row.item = "this-machine";
  row.region = "here";
  row.cells[static_cast<std::size_t>(Provisioning::own)] = {true, DollarsPerHour(0)};
  row.offered = ListedAs::offered;
  row.dated = {"the machine at hand", today, "high", {}, true};
  return row;
}

}  // namespace

Result<Shown> show_prices(CatalogView& view, const CatalogFilters& f, const std::optional<double>& max_price, bool all,
                          int width) {
  const PriceList list = TRY(PriceList::create(f, max_price, view));
  TRY(list.check_places(view));
  const PriceRow own = at_hand(view.today);
  std::vector<const PriceRow*> found;
  std::size_t elsewhere = 0;
  for (const PriceRow& row : TRY(view.tables.prices())) {
    if (!list.wanted(row)) continue;
    if (row.offered == ListedAs::not_offered && !all)
      ++elsewhere;
    else
      found.push_back(&row);
  }
  const bool unfiltered = f.accelerator.empty() && f.machine.empty() && f.region.empty() && f.zone.empty();
  SourceNotes notes(view.today, true);
  std::string text = found.empty() ? "no list names a price of that: it is unknown, which is not 0\n"
                                   : text_of(found, TRY(view.tables.machines()), notes, width) + kLegend;
  if (unfiltered) text += "this-machine is an offer too: $0.00/h, one's own\n";
  if (elsewhere > 0)
    text += fmt::format("{} more of regions where no zone is known to have the hardware: --all\n", elsewhere);
  text += notes.text(width);
  Node rows = Node::sequence();
  for (const PriceRow* row : found) rows.push(node_of(*row, view.today));
  if (unfiltered) rows.push(node_of(own, view.today));
  return Shown{std::move(text),
               Node::map({{"today", view.today}, {"prices", std::move(rows)}, {"left_out", elsewhere}})};
}

}  // namespace systole
