#pragma once
// When a process of a run was asked to stop, and the time left to save.

#include <csignal>
#include <optional>

#include "ground/base/clock.h"
#include "ground/process/signal_watch.h"
#include "operate/launch/preemption.h"

namespace systole {

// For a rank: stops by signals only, always with the same notice. Its agent watches for preemptions.
class RankStopWatch {
 public:
  RankStopWatch(const SignalWatch& signals, Clock& clock, Seconds notice)
      : signals_(signals), clock_(clock), notice_(notice) {}
  bool requested() {
    if (signals_.stop_requested() && !since_) since_ = clock_.now();
    return since_.has_value();
  }
  Seconds left() const { return since_ ? notice_ - (clock_.now() - *since_) : notice_; }

 private:
  const SignalWatch& signals_;
  Clock& clock_;
  Seconds notice_;
  std::optional<Seconds> since_;
};

// Stops by signals or at a preemption. After Ctrl-C there is no limit: the user waits for the save.
class RunStopWatch {
 public:
  RunStopWatch(const SignalWatch& signals, const PreemptionWatch& preemption, Clock& clock, Seconds notice)
      : signals_(signals), preemption_(preemption), clock_(clock), notice_(notice) {}
  bool requested() {
    if (!since_ && (signals_.stop_requested() || preemption_.announced())) since_ = clock_.now();
    return since_.has_value();
  }
  Seconds left() const {
    constexpr Seconds kAsLongAsItTakes(1e9);
    if (!since_ || (signals_.signal() == SIGINT && !preemption_.announced())) return kAsLongAsItTakes;
    return notice_ - (clock_.now() - *since_);
  }

 private:
  const SignalWatch& signals_;
  const PreemptionWatch& preemption_;
  Clock& clock_;
  Seconds notice_;
  std::optional<Seconds> since_;
};

// Turns signals that would end the process during a write into errors of the writer: a closed pipe, a file size limit.
inline void outlive_failed_writes() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace systole
