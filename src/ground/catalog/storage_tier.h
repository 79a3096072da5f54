#pragma once
// Where data and checkpoints may lie in a cloud: how large, how fast, for how much.

#include <optional>
#include <string>

#include "ground/base/units.h"
#include "ground/catalog/table_row.h"

namespace systole {

struct StorageTier {
  std::string storage, tier, interface, scope;  // "Filestore", "Basic SSD", "NFSv3", "zone"
  std::optional<Bytes> least, most;             // of one instance
  std::optional<BytesPerSecond> read_per_tib, write_per_tib;
  std::optional<Dollars> per_gib_month;  // not known: none, which is not 0
  std::string region;                    // of that price
  // In the vendor's words: limits that no single number says.
  std::string step, read, write, read_iops, write_iops, clients, other_price, limits, access;
  Dated dated;
  std::string note;
};

extern const TableColumns kStorageColumns;
StorageTier read_storage_tier(TableRow& row);

}  // namespace systole
