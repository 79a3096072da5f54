#pragma once
// Where the time of one rank goes: at each moment exactly one category is open, so the categories sum up to the wall
// time by construction and nothing is found by subtraction. What nobody claims is `other`.
//
// Each stretch also goes into a ring (ground/base/telemetry.h), which a kill leaves behind: span.category is the one
// that ended, span.track the one that began, span.tag the step. So the last record says where the process was.

#include "describe/spec/run.h"
#include "execute/train/stage_watch.h"
#include "ground/base/clock.h"
#include "ground/base/telemetry.h"

namespace systole {

class TimeLedger {
 public:
  TimeLedger(Clock& clock, Category first) : clock_(clock), since_(clock.now()), stretch_(since_), open_(first) {}

  // From now on; null: into none. The ring must outlive the ledger, its times count from `origin`.
  void record_into(Ring* ring, Seconds origin) {
    ring_ = ring;
    origin_ = origin;
  }
  void set_step(std::int64_t step) { step_ = step; }
  // Told of each change from now on; null: nobody. It must outlive the ledger.
  void tell(StageWatch* stages) { stages_ = stages; }

  // Closes the open category and opens another; returns the one that was open.
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

  // Everything since the ledger was opened, the open category included.
  TimeByCategory total() {
    enter(open_);
    return total_;
  }
  // Everything since the last call.
  TimeByCategory take_interval() {
    enter(open_);
    const TimeByCategory taken = interval_;
    interval_ = {};
    return taken;
  }

 private:
  Clock& clock_;
  Seconds since_;    // counted up to here
  Seconds stretch_;  // the open category's beginning
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
