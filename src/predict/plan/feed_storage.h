#pragma once
// The feed of a run elsewhere: the rows of shards that the chosen hardware takes, beside what the catalog knows of the
// storage that data.folder is on there, as the workload's `volumes` say. Unknown speeds stay unknown.

#include <optional>
#include <string>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/base/units.h"
#include "ground/catalog/tables.h"

namespace systole {

struct StorageSpeed {
  std::string name;     // "filestore zonal of 1 TiB"
  bool shared = false;  // by all nodes
  std::optional<BytesPerSecond> read;
  std::optional<double> reads_per_second;  // small ones; nothing: unknown
  std::string source;                      // "catalog of 2026-11-01"; or why it is unknown
  // Where the speed grows with the size, and the size is the workload's to say.
  bool sized = false;
  Bytes size, least, step;
  std::optional<DollarsPerGibMonth> price;  // nothing: unknown
};

// Where a path of the workload is, in a target's containers. Errors: those of the tables.
Result<StorageSpeed> storage_of(const Workload& workload, const std::string& path, CatalogTables& tables);

struct OfferedFeed {
  std::int64_t rows = 0, nodes = 1;  // of a step; that each read all of them
  double row_bytes = 0;              // of shards
  Seconds step;                      // without waiting
  StorageSpeed storage;

  double rows_per_second() const { return static_cast<double>(rows) / step.count(); }
  // What the storage is asked for, by all nodes that share it.
  BytesPerSecond needed() const;
  double reads() const;  // of blocks of 4 KiB, a second, in the first epoch
  // Nothing: its speed is unknown. Above 1: the storage gives more than is taken.
  std::optional<double> spare() const;
  // The smallest size of the volume that gives what is taken, half as much again to spare. Nothing: no size is known to.
  std::optional<Bytes> enough() const;
};
OfferedFeed offered_feed(const Workload& workload, std::int64_t nodes, Seconds step, StorageSpeed storage);

// Lines of the plan; ends in a newline.
std::string offered_feed_text(const OfferedFeed& feed);
Node offered_feed_node(const OfferedFeed& feed);

}  // namespace systole
