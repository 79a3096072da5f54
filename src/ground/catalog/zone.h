#pragma once
// Where accelerators are available: a row per accelerator and zone.

#include <string>
#include <vector>

#include "ground/catalog/table_row.h"

namespace systole {

struct ZoneRow {
  std::string accelerator, region, zone;
  std::vector<std::string> machines;  // patterns of machine types there; empty: all of the accelerator's
  std::string slices;                 // for v2 and v3: "device" (one host) or "pod"; else empty: all
  bool published = false;             // the vendor's pages list the zone; false: seen through its API only
  Dated dated;
  std::string note;
};

extern const TableColumns kZoneColumns;
ZoneRow read_zone(TableRow& row);

}  // namespace systole
