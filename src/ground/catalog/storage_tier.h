#pragma once
// Cloud storage for data and checkpoints: size limits, speed and price.

#include <optional>
#include <string>

#include "ground/base/units.h"
#include "ground/catalog/table_row.h"

namespace systole {

struct StorageTier {
  std::string storage, tier, interface, scope;  // "Filestore", "Basic SSD", "NFSv3", "zone"
  std::optional<Bytes> least, most;             // per instance
  std::optional<BytesPerSecond> read_per_tib, write_per_tib;
  std::optional<DollarsPerGibMonth> price;                 // none: unknown, not 0
  std::optional<Dollars> thousand_writes, thousand_reads;  // of requests: puts and lists; gets. None: unknown, not 0
  std::optional<Dollars> gib_to_internet;                  // of bytes that leave the vendor's network. None: unknown
  std::string region;                                      // region of the prices
  // In the vendor's words: limits that are not a single number.
  std::string step, read, write, read_iops, write_iops, clients, other_price, limits, access;
  Dated dated;
  std::string note;
};

extern const TableColumns kStorageColumns;
StorageTier read_storage_tier(TableRow& row);

}  // namespace systole
