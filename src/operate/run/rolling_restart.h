#pragma once
// The order of a rolling restart: for each replica, one after the other,
//
//   start   a new one is started beside it
//   adopt   the new one serves: it takes the place, and the old one gets no more requests
//   stop    the old one has no request under way, or has had its grace: SIGTERM
//   kill    it does not end
//   next    it has ended
//
// and `fail` if a new one ends or does not serve within its budget: the old one stays, and the restart is over. No place
// is empty at any moment. Without processes and a clock: the caller says what it sees, and does what is next.

#include "ground/base/units.h"

namespace systole {

struct RollingSeen {
  bool new_serves = false, new_has_ended = false;
  bool old_lives = false;  // once the new one has its place
  int under_way = 0;       // requests at the old one
};

enum class RollingStep { wait, start, adopt, stop, kill, next, fail };

class RollingRestart {
 public:
  // A new one has `budget` to serve; an old one `grace` for the requests that it has, and again to end.
  RollingRestart(int replicas, Seconds budget, Seconds grace) : replicas_(replicas), budget_(budget), grace_(grace) {}

  int at() const { return at_; }  // the replica that is restarted
  bool is_over() const { return phase_ == Phase::over; }
  Seconds budget() const { return budget_; }

  RollingStep next(Seconds now, const RollingSeen& seen) {
    const Seconds waited = now - since_;
    switch (phase_) {
      case Phase::before: return enter(Phase::loads, now, RollingStep::start);
      case Phase::loads:
        if (seen.new_has_ended || (!seen.new_serves && waited >= budget_))
          return enter(Phase::over, now, RollingStep::fail);
        return seen.new_serves ? enter(Phase::drains, now, RollingStep::adopt) : RollingStep::wait;
      case Phase::drains:
        if (!seen.old_lives) return advance(now);
        return seen.under_way == 0 || waited >= grace_ ? enter(Phase::ends, now, RollingStep::stop) : RollingStep::wait;
      case Phase::ends:
        if (!seen.old_lives) return advance(now);
        return waited >= grace_ ? enter(Phase::is_killed, now, RollingStep::kill) : RollingStep::wait;
      case Phase::is_killed: return seen.old_lives ? RollingStep::wait : advance(now);
      case Phase::over: break;
    }
    return RollingStep::wait;
  }

 private:
  enum class Phase { before, loads, drains, ends, is_killed, over };
  RollingStep enter(Phase phase, Seconds now, RollingStep step) {
    phase_ = phase;
    since_ = now;
    return step;
  }
  RollingStep advance(Seconds now) {
    return enter(++at_ == replicas_ ? Phase::over : Phase::before, now, RollingStep::next);
  }

  int replicas_, at_ = 0;
  Seconds budget_, grace_, since_{};
  Phase phase_ = Phase::before;
};

}  // namespace systole
