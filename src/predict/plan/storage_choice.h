#pragma once
// Which new storage a run's rows are read from: an open volume (VolumeSpec::open) may become each tier and size of the
// catalog that holds them and has a known price and speed. An unknown price never counts as zero: such a tier is none
// of the options. Prices are those of the catalog's region, per GiB and month.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/catalog/tables.h"
#include "predict/plan/feed_storage.h"

namespace systole {

struct StorageOption {
  VolumeSpec volume;
  StorageSpeed speed;   // of known read speed
  DollarsPerHour cost;  // of all nodes' together
  std::string region;   // of the price
};

struct StorageAsk {
  Bytes holds;
  std::int64_t nodes = 1;
  std::optional<Bytes> local = {};  // of local SSD that each node may have; nothing: none
  bool saves = false;               // checkpoints are written there: a tier of unknown write speed is no option
};

// The cheapest first; of equal price the faster. `open`: as the workload has it.
std::vector<StorageOption> storage_options(const VolumeSpec& open, const StorageAsk& ask,
                                           std::span<const StorageTier> tiers);

struct StoragePick {
  StorageOption option;
  OfferedFeed feed;        // beside it
  std::size_t others = 0;  // options that were dearer, or gave too little
};
// The cheapest that gives half as much again as the feed takes. `feed`: of any storage. Errors: does_not_fit: none
// does, or none holds the rows.
Result<StoragePick> cheapest_storage(const std::vector<StorageOption>& options, const OfferedFeed& feed, Bytes holds);

// "filestore zonal of 1.00 TiB: 273 MB/s, ...", on a line without its end.
std::string pick_text(const StoragePick& pick, Bytes holds);

}  // namespace systole
