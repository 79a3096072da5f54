#include "ground/catalog/zone.h"

namespace systole {
namespace {

constexpr std::string_view kRequired[] = {"accelerator", "region", "zone", "source", "date"};
constexpr std::string_view kOptional[] = {"machines", "slices", "published", "confidence", "note"};

}  // namespace

const TableColumns kZoneColumns{"zones", kRequired, kOptional};

ZoneRow read_zone(TableRow& row) {
  ZoneRow zone;
  zone.accelerator = row.name("accelerator");
  zone.region = row.name("region");
  zone.zone = row.name("zone");
  zone.machines = row.list("machines");
  zone.slices = row.string("slices");
  zone.published = row.yes("published");
  zone.dated = row.dated("accelerator");
  zone.note = row.string("note");
  return zone;
}

}  // namespace systole
