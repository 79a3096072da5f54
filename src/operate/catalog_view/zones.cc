// `systole catalog zones`: which accelerators each zone has.

#include <set>

#include "ground/base/nearest.h"
#include "operate/catalog_view/catalog_view.h"

namespace systole {
namespace {

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
Status check_place(const std::string& asked, const std::set<std::string>& known, const char* what) {
  if (asked.empty() || known.contains(asked)) return {};
  const std::vector<std::string> names(known.begin(), known.end());
  return error(ErrorKind::not_found, "the catalog knows no {} '{}'", what, asked).hinted(nearest_hint(asked, names));
}

}  // namespace

Result<Shown> show_zones(CatalogView& view, const CatalogFilters& wanted, int width) {
  const std::string accelerator = TRY(asked_accelerator(view, wanted.accelerator));
  SourceNotes notes(view.today, true);
  std::set<std::string> regions, places;
  std::vector<std::vector<std::string>> rows;
  Node list = Node::sequence();
  for (const ZoneRow& row : TRY(view.tables.zones())) {
    regions.insert(row.region);
    places.insert(row.zone);
    if ((!accelerator.empty() && row.accelerator != accelerator) || !holds(row, wanted.machine)) continue;
    if (!wanted.region.empty() && row.region != wanted.region) continue;
    if (!wanted.zone.empty() && row.zone != wanted.zone) continue;
    rows.push_back(
        {row.zone, row.accelerator, machines_text(row), row.published ? "yes" : "no", notes.fact(row.dated)});
    list.push(node_of(row, view.today));
  }
  TRY(check_place(wanted.region, regions, "region"));
  TRY(check_place(wanted.zone, places, "zone"));
  std::string text;
  if (rows.empty())
    text = "no zone that the catalog knows has that";
  else
    text = table({"zone", "accelerator", "machines", "published", "source"}, rows, width) +
           "\npublished: the vendor's pages name the zone; the others were seen through its interfaces\n" +
           notes.text(width);
  return Shown{std::move(text), Node::map({{"today", view.today}, {"zones", std::move(list)}})};
}

}  // namespace systole
