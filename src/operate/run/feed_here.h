#pragma once
// The feed of a workload's rows on this machine: what a probe measured, kept in the user's catalog as one entry for each
// text and shape of rows, and the plan that follows.
//
//   this-machine-feed-0123456789abcdef:
//     kind: feed
//     doc: "AMD EPYC 9B14, 2 cores; /data/tokens"      # a probe holds for the same machine and folder only
//     facts:
//       rows.cold.1: { value: 812.5 /s, ... }          # of 1, 2, 4 and 8 threads, from the storage
//       rows.warm.1: { value: 45120 /s, ... }          # from the system's cache
//       row.processor: { value: 9.1 us, ... }
//       hiccup, shards.read, prepare.text, prepare.open, prepare.read, ...

#include <optional>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "execute/data/feed_probe.h"
#include "ground/base/clock.h"
#include "operate/run/built_data.h"
#include "predict/plan/feed_plan.h"

namespace systole {

struct FeedMeasured {
  std::vector<SourceProbe> sources;
  std::optional<ShardProbe> shards;  // nothing: not built
  bool held_up = false;              // the reader was slowed on purpose
};

// Writes the entry. Returns its file. Errors: not_found: no place for the user's catalog; io, no_space.
Result<std::string> save_feed(const Workload& workload, const FeedMeasured& measured, Clock& clock);

// The rates in the user's catalog. Nothing: none. Errors: invalid: of another machine or folder; those of the catalog.
Result<std::optional<FeedSpeed>> read_feed(const Workload& workload);

// The rates of a probe as the plan takes them.
FeedSpeed speed_of(const ShardProbe& probe, std::string source);

// The plan for the rows of a dataset. `epoch`: of these rows. `step`: without waiting. A catalog that cannot be used leaves the rates unknown,
// and says why.
PlannedFeed feed_here(const Workload& workload, const Dataset& dataset, const EpochRows& epoch,
                      std::optional<Seconds> step);

}  // namespace systole
