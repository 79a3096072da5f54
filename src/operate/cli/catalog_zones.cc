// `systole catalog zones`: which accelerators each zone has.

#include <set>

#include "ground/base/nearest.h"
#include "operate/cli/catalog_view.h"

namespace systole::cli {
namespace {

struct ZonesOptions {
  CatalogFilters filters;
};

bool holds(const ZoneRow& row, const std::string& machine) {
  if (machine.empty()) return true;
  for (const std::string& pattern : row.machines)
    if (matches(pattern, machine) || matches(machine, pattern)) return true;
  return false;
}

// "a2-highgpu-1g/2g/4g a2-megagpu-16g".
std::string machines_text(const ZoneRow& row) {
  std::string text, family;
  for (const std::string& name : row.machines) {
    const std::size_t size = name.rfind('-') + 1;
    if (!text.empty()) text += size > 0 && name.substr(0, size) == family ? "/" : " ";
    text += text.ends_with('/') ? name.substr(size) : name;
    family = name.substr(0, size);
  }
  if (!text.empty()) return text;
  return row.slices.empty() ? "all slices" : row.slices == "pod" ? "pods" : "single hosts";
}

Node node_of(const ZoneRow& row, const std::string& today) {
  Node machines = Node::sequence();
  for (const std::string& name : row.machines) machines.push(name);
  Node node = Node::map({{"accelerator", row.accelerator},
                         {"region", row.region},
                         {"zone", row.zone},
                         {"machines", std::move(machines)},
                         {"slices", row.slices},
                         {"published", row.published},
                         {"note", row.note}});
  set_dated(node, row.dated.source, row.dated.date, today, kFactIsOldAfter);
  return node;
}

// An unknown region or zone is an error, not an empty list.
void check_place(const std::string& asked, const std::set<std::string>& known, const char* what) {
  if (asked.empty() || known.contains(asked)) return;
  const std::vector<std::string> names(known.begin(), known.end());
  fail(error(ErrorKind::not_found, "the catalog knows no {} '{}'", what, asked).hinted(nearest_hint(asked, names)));
}

ExitCode zones(const ZonesOptions& options, Context& context) {
  CatalogView view = open_catalog_view(context.clock).value();
  const CatalogFilters& wanted = options.filters;
  const std::string accelerator = asked_accelerator(view, wanted.accelerator).value();
  SourceNotes notes(view.today, true);
  std::set<std::string> regions, places;
  std::vector<std::vector<std::string>> rows;
  Node list = Node::sequence();
  for (const ZoneRow& row : view.tables.zones().value()) {
    regions.insert(row.region);
    places.insert(row.zone);
    if ((!accelerator.empty() && row.accelerator != accelerator) || !holds(row, wanted.machine)) continue;
    if (!wanted.region.empty() && row.region != wanted.region) continue;
    if (!wanted.zone.empty() && row.zone != wanted.zone) continue;
    rows.push_back(
        {row.zone, row.accelerator, machines_text(row), row.published ? "yes" : "no", notes.fact(row.dated)});
    list.push(node_of(row, view.today));
  }
  check_place(wanted.region, regions, "region");
  check_place(wanted.zone, places, "zone");
  if (rows.empty())
    context.out.data("no zone that the catalog knows has that");
  else
    context.out.prose(table({"zone", "accelerator", "machines", "published", "source"}, rows, context.out.width()) +
                      "\npublished: the vendor's pages name the zone; the others were seen through its interfaces\n" +
                      notes.text(context.out.width()));
  context.out.json(Node::map({{"today", view.today}, {"zones", std::move(list)}}));
  return ExitCode::done;
}

}  // namespace

void add_catalog_zones(Subcommand catalog, Context& context) {
  auto options = std::make_shared<ZonesOptions>();
  Subcommand command = add_command(catalog, "zones", "which accelerator is in which zone", options, context, zones);
  add_accelerator_filter(command, options->filters);
  add_machine_filter(command, options->filters);
  add_place_filters(command, options->filters);
}

}  // namespace systole::cli
