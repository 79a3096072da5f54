#pragma once
// Detects stragglers and hangs from the flight logs of a run's ranks, while it runs. Pure: logs and the time go in,
// sentences come out, so tests can try every fault without a process.
//
// Slow: a step takes equally long on all ranks, so step times do not show the straggler. But each rank knows how long
// it waited for others. A rank that spent more than the others on its own work, in the same stage in two of three
// steps, is the straggler. Time in which the machine did not schedule the rank does not count.
//
// Stuck: nothing changes on any rank. Waiting ranks point at each other; the cause is the rank at the end of the chain,
// which waits for no one. If all wait, a rank waits for a message that its sender has already passed, so the message
// was lost; unless a rank is stopped and cannot receive it.

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/flight.h"

namespace systole {

struct Straggler {
  enum class Kind { slow, stuck, lost_message, mismatch, flipped_bit };
  Kind kind = Kind::slow;
  int rank = -1;
  RankStage stage = RankStage::other;
  std::int64_t step = 0;
  Seconds took, usual;     // slow: its stage time, and that of the others. stuck: how long
  std::string collective;  // the one that the others are in, or that failed
  int peer = -1;           // lost_message: the receiver
  std::string detail;      // flipped_bit: what the rank found; stuck: further facts
};
std::string to_string(const Straggler& straggler);  // one sentence
const char* name_of(Straggler::Kind kind);

struct StragglerOptions {
  std::int64_t warm_up = 3;               // steps of a generation that are ignored
  double share = 0.5;                     // slow: minimal excess, as a share of the others' own time of a step
  Seconds floor = Seconds(0.04);          // and absolute
  double steps = 2;                       // stuck: minimal standstill, in usual steps
  Seconds still = Seconds(1.2);           // and absolute
  Seconds still_at_rest = Seconds(30.0);  // in stages that may take long: checkpoints, evaluation
  // Whether a rank's process is stopped, by a signal or a debugger, as far as this is visible. A stopped rank cannot
  // receive, so its log looks as if the message were lost.
  std::function<bool(const FlightIdentity&)> is_stopped = {};
};

class StragglerWatch {
 public:
  explicit StragglerWatch(StragglerOptions options = {}) : options_(options) {}

  // `flights`: of all ranks of a generation, in any order; with fewer it reports nothing. `now`: of the caller's clock.
  // Each straggler is reported once per generation.
  std::vector<Straggler> look(const std::vector<Flight>& flights, Seconds now);

 private:
  struct Suspect {
    int rank = -1;
    RankStage stage = RankStage::other;
    bool operator==(const Suspect&) const = default;
  };
  void begin(const std::vector<const Flight*>& ranks, Seconds now);
  std::optional<Straggler> judge(std::int64_t step, const std::vector<const FlightStep*>& ranks);
  std::optional<Straggler> slow(const std::vector<const Flight*>& ranks);
  std::optional<Straggler> stuck(const std::vector<const Flight*>& ranks, Seconds now);
  bool told(const Straggler& straggler);

  StragglerOptions options_;
  std::int64_t generation_ = -1;
  std::uint64_t launch_ = 0;
  std::int64_t first_step_ = 0, judged_ = 0;
  Seconds usual_;  // time of a step
  std::deque<Suspect> suspects_;
  std::uint64_t changes_ = 0;
  Seconds changed_at_, looked_at_;
  std::set<std::pair<int, int>> told_;  // kind and rank
};

// For a generation that has ended: the rank in a different collective than the majority, or the one that found a
// flipped bit of its own. Nothing if it ended otherwise, or no rank stands out.
std::optional<Straggler> what_ended(const std::vector<Flight>& flights);

}  // namespace systole
