#pragma once
// The feed of a run elsewhere: the rows of shards that the chosen hardware takes, beside what the catalog knows of the
// storage that data.folder is on there, as the workload's `volumes` say. Unknown speeds stay unknown.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "describe/spec/plan.h"
#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/base/units.h"
#include "ground/catalog/tables.h"

namespace systole {

inline constexpr double kToSpare = 1.5, kTooMuch = 10;  // of a volume's speed over what is taken
inline constexpr double kMonthHours = 730;              // of a month's price, as clouds bill

struct StorageSpeed {
  std::string name;     // "filestore zonal of 1 TiB"
  bool shared = false;  // by all nodes
  std::optional<BytesPerSecond> read, write;
  std::optional<double> reads_per_second;  // small ones; nothing: unknown
  std::string source;                      // "catalog of 2026-11-01"; or why it is unknown
  // Where the speed grows with the size, and the size is the workload's to say.
  bool sized = false;
  Bytes size, least, step;
  std::optional<DollarsPerGibMonth> price;  // nothing: unknown
  bool made = false;                        // with the run, which pays for it
  std::optional<DollarsPerHour>
      cost;  // of all of it, if it is made; of each node's, if it is not shared. Nothing: unknown
};

// Of a token in shards (execute/data/token_shard.h).
std::int64_t shard_token_bytes(const ModelSpec& model);
// One volume, by the catalog's rows.
StorageSpeed speed_of_volume(const VolumeSpec& volume, std::span<const StorageTier> tiers);
// The row of the catalog that a volume is; null: none.
const StorageTier* tier_of_volume(const VolumeSpec& volume, std::span<const StorageTier> tiers);
// The path of the volume that a path is in, the innermost; null: none.
const std::string* mount_of(const Workload& workload, const std::string& path);
// "256", "9000 up to 1,530,000": the number that a text begins with. Nothing: none.
std::optional<double> number_in_front(std::string_view text);

// Where a path of the workload is, in a target's containers. Errors: those of the tables.
Result<StorageSpeed> storage_of(const Workload& workload, const std::string& path, CatalogTables& tables);

struct OfferedFeed {
  double rows = 0;         // of a step; of several lengths the mean
  std::int64_t nodes = 1;  // that each read all of them
  double row_bytes = 0;    // of shards
  Seconds step;            // without waiting
  StorageSpeed storage;

  double rows_per_second() const { return rows / step.count(); }
  // What the storage is asked for, by all nodes that share it.
  BytesPerSecond needed() const;
  double reads() const;  // of blocks of 4 KiB, a second, in the first epoch
  // Nothing: its speed is unknown. Above 1: the storage gives more than is taken.
  std::optional<double> spare() const;
  // The least time of a step's rows from the storage. Zero: its speed is unknown.
  Seconds least_step() const { return spare() ? step * (1 / *spare()) : Seconds(); }
  // The smallest size of the volume that gives what is taken, half as much again to spare. Nothing: no size is known to.
  std::optional<Bytes> enough() const;
};
// `shapes`: of data.buckets, with their steps of an epoch; empty: rows of one length. `step` is then the mean.
OfferedFeed offered_feed(const Workload& workload, std::int64_t nodes, Seconds step, StorageSpeed storage,
                         std::span<const PlannedShape> shapes = {});

// Lines of the plan; ends in a newline.
std::string offered_feed_text(const OfferedFeed& feed);
Node offered_feed_node(const OfferedFeed& feed);

}  // namespace systole
