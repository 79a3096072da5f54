#pragma once
// Who holds the others up, and in what: out of the flight logs of a run's ranks, while it runs. Pure: logs and the time
// go in, sentences come out, so that its tests try every fault without a process.
//
// Slow: a step takes all ranks equally long, so nobody is slow by the step. But each knows what it waited for others;
// who spent more than the others on its own work, in the same stage in two of three steps, holds them up. Time that the
// machine kept a rank from running is not its own.
// Stuck: nothing changes in any rank. The ranks that wait point at each other; the one at the end of the chain that
// waits for nobody is the cause. If all wait, somebody waits for a message that its sender has long left behind: it was
// lost; unless one of them is stopped and cannot take it.

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/flight.h"

namespace systole {

struct HoldUp {
  enum class Kind { slow, stuck, lost_message, mismatch, flipped_bit };
  Kind kind = Kind::slow;
  int rank = -1;
  RankStage stage = RankStage::other;
  std::int64_t step = 0;
  Seconds took, usual;     // slow: its stage, and that of the others. stuck: for how long
  std::string collective;  // that the others are in, or that went wrong
  int peer = -1;           // lost_message: to whom
  std::string detail;      // flipped_bit: what the rank found; stuck: what is known besides
};
std::string to_string(const HoldUp& hold_up);  // one sentence
const char* name_of(HoldUp::Kind kind);

struct StragglerOptions {
  std::int64_t warm_up = 3;               // steps of a generation that are not judged
  double share = 0.5;                     // slow: beyond the others by so much of their own time of a step
  Seconds floor = Seconds(0.04);          // and by this
  double steps = 2;                       // stuck: nothing moves for so many usual steps
  Seconds still = Seconds(1.2);           // and for this
  Seconds still_at_rest = Seconds(30.0);  // in stages that may take long: checkpoints, evaluation
  // Whether a rank's process is stopped, by a signal or a debugger, as far as can be told: one that is cannot take what
  // it waits for, and its log looks as if that were lost.
  std::function<bool(const FlightIdentity&)> is_stopped = {};
};

class StragglerWatch {
 public:
  explicit StragglerWatch(StragglerOptions options = {}) : options_(options) {}

  // `flights`: of all ranks of a generation, any order; fewer, and nothing is said. `now`: of the caller's clock. Each
  // hold-up is told once in a generation.
  std::vector<HoldUp> look(const std::vector<Flight>& flights, Seconds now);

 private:
  struct Suspect {
    int rank = -1;
    RankStage stage = RankStage::other;
    bool operator==(const Suspect&) const = default;
  };
  void begin(const std::vector<const Flight*>& ranks, Seconds now);
  std::optional<HoldUp> judge(std::int64_t step, const std::vector<const FlightStep*>& ranks);
  std::optional<HoldUp> slow(const std::vector<const Flight*>& ranks);
  std::optional<HoldUp> stuck(const std::vector<const Flight*>& ranks, Seconds now);
  bool told(const HoldUp& hold_up);

  StragglerOptions options_;
  std::int64_t generation_ = -1;
  std::uint64_t launch_ = 0;
  std::int64_t first_step_ = 0, judged_ = 0;
  Seconds usual_;  // a step
  std::deque<Suspect> suspects_;
  std::uint64_t changes_ = 0;
  Seconds changed_at_, looked_at_;
  std::set<std::pair<int, int>> told_;  // kind and rank
};

// Of a generation that has ended: which rank did another collective than the most, or found that a bit of its own had
// flipped. None when it ended otherwise, or the ranks cannot be told apart.
std::optional<HoldUp> what_ended(const std::vector<Flight>& flights);

}  // namespace systole
