#pragma once
// Whether a run's rows come as fast as its devices take them: the need of a step beside the rates that a probe measured,
// and the number of threads that read and of batches in the queue that follow.
//
// A step takes the longer of computing and of getting its rows, because rows are read ahead: a reader that gives r rows a
// second makes a step of n rows take n / r at least. The first epoch reads the storage ("cold"); if the shards fit in the
// memory left, later epochs read the system's cache.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/plan.h"
#include "ground/base/units.h"

namespace systole {

// What a probe measured. Unknown rates are absent, never zero.
struct FeedSpeed {
  struct Rate {
    std::int64_t readers = 1;  // threads
    double rows_per_second = 0;
    bool cold = false;
  };
  std::vector<Rate> rates;  // any order
  Seconds processor;        // of a row
  Seconds hiccup;           // the longest time between two batches, beyond the usual
  std::string source;       // "systole data probe of 2026-11-28"
};

struct FeedNeed {
  std::int64_t rows = 1;                       // of a step
  double row_bytes = 0;                        // of shards
  std::optional<Seconds> step;                 // without waiting; nothing: unknown
  double steps = 0, epoch_steps = 0;           // of the run; of one epoch; 0: unknown
  bool stays_in_memory = false;                // the shards, after they were read
  std::optional<std::int64_t> readers, queue;  // that the workload says
};

// The rate of so many threads, between the measured numbers; beyond the largest it does not grow. Nothing: unknown.
std::optional<double> rows_per_second(const FeedSpeed& speed, std::int64_t readers, bool cold);

// Without a speed, or without a time of a step, it says what is unknown, and has the usual threads and queue.
PlannedFeed plan_feed(const FeedNeed& need, const std::optional<FeedSpeed>& speed);

// "feed: 8 rows a step, 42 rows/s ...", lines of the plan.
std::string feed_text(const PlannedFeed& feed, Seconds step);

}  // namespace systole
