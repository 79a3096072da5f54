#pragma once
// Where accelerators are: a row for each accelerator and zone.

#include <string>
#include <vector>

#include "ground/catalog/table_row.h"

namespace systole {

struct ZoneRow {
  std::string accelerator, region, zone;
  std::vector<std::string> machines;  // machine types there, as patterns; empty: all of the accelerator's
  std::string slices;                 // of v2 and v3: "device" (one host) or "pod"; else empty: all
  bool published = false;             // the vendor's pages name the zone; others were seen through its interfaces
  Dated dated;
  std::string note;
};

extern const TableColumns kZoneColumns;
ZoneRow read_zone(TableRow& row);

}  // namespace systole
