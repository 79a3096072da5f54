#pragma once
// Time accounting of one rank. Exactly one category is open at each moment, so the categories sum to the wall time by
// construction; nothing is computed by subtraction. Unclaimed time is `other`.
//
// Each interval is also recorded in a ring (ground/base/telemetry.h) that survives a kill: span.category is the
// category that ended, span.track the one that began, span.tag the step. So the last record shows what the process did.

#include "describe/spec/run.h"
#include "execute/train/stage_watch.h"
#include "ground/base/clock.h"
#include "ground/base/telemetry.h"

namespace systole {

class TimeLedger {
 public:
  TimeLedger(Clock& clock, Category first) : clock_(clock), since_(clock.now()), stretch_(since_), open_(first) {}

  // Records from now on; null: stops. The ring must outlive the ledger; its times count from `origin`.
  void record_into(Ring* ring, Seconds origin) {
    ring_ = ring;
    origin_ = origin;
  }
  void set_step(std::int64_t step) { step_ = step; }
  // Reports each change to `stages` from now on; null: stops. It must outlive the ledger.
  void tell(StageWatch* stages) { stages_ = stages; }

  // Closes the open category and opens `next`; returns the closed one.
  Category enter(Category next) {
    const Seconds now = clock_.now();
    if (next != open_) {
      if (ring_ != nullptr) {
        ring_->record({static_cast<std::uint32_t>(open_), static_cast<std::uint32_t>(next),
                       static_cast<std::uint64_t>(step_), stretch_ - origin_, now - origin_});
      }
      stretch_ = now;
      if (stages_ != nullptr) stages_->enter(next, now);
    }
    total_[open_] += now - since_;
    interval_[open_] += now - since_;
    since_ = now;
    const Category before = open_;
    open_ = next;
    return before;
  }

  // All time since the ledger was opened, the open category included.
  TimeByCategory total() {
    enter(open_);
    return total_;
  }
  // All time since the last call.
  TimeByCategory take_interval() {
    enter(open_);
    const TimeByCategory taken = interval_;
    interval_ = {};
    return taken;
  }

 private:
  Clock& clock_;
  Seconds since_;    // counted up to here
  Seconds stretch_;  // beginning of the open category
  Category open_;
  TimeByCategory total_, interval_;
  Ring* ring_ = nullptr;
  StageWatch* stages_ = nullptr;
  Seconds origin_;
  std::int64_t step_ = 0;
};

// Opens a category for a scope.
class InCategory {
 public:
  InCategory(TimeLedger& ledger, Category category) : ledger_(ledger), before_(ledger.enter(category)) {}
  ~InCategory() { ledger_.enter(before_); }
  InCategory(const InCategory&) = delete;
  InCategory& operator=(const InCategory&) = delete;

 private:
  TimeLedger& ledger_;
  Category before_;
};

}  // namespace systole
