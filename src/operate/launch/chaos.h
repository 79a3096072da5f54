#pragma once
// Random faults: kills, stops and delays ranks, to rehearse failures of a cluster: `systole run --chaos FILE`.
//
//   systole-chaos: 1
//   seed: 7
//   mean_time_between: 30s   # hazards of one rank; eight ranks have eight times as many
//   most: 5                  # in all
//   spare: 2s                # at first
//   kinds:
//     kill: 3                          # weight
//     stop: { weight: 1, for: 3s }     # SIGSTOP, and SIGCONT after so long
//     delay: { weight: 2, for: 200ms }
//
// A Poisson process: the hazards of each rank are independent. Time counts while ranks run. The same seed draws the
// same hazards; what they hit depends on the machine.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "operate/launch/local_ranks.h"

namespace systole {

struct HazardKind {
  enum class What { kill, stop, delay } what = What::kill;
  double weight = 1;
  Seconds lasts;  // of stop and delay
};
const char* name_of(HazardKind::What what);

struct HazardModel {
  std::uint64_t seed = 1;
  Seconds mean_time_between;  // of one rank
  std::int64_t most = 100;
  Seconds spare;
  std::vector<HazardKind> kinds;
};

// `file`: name for messages. Errors: invalid, with line and column; unsupported (a newer version).
Result<HazardModel> read_hazards(std::string_view text, const std::string& file);

struct Hazard {
  Seconds after;     // since the previous hazard, or the start
  double which = 0;  // which rank: its position among the ranks, in [0, 1)
  HazardKind kind;
};
// The n-th hazard of a job of so many ranks. A pure function.
Hazard hazard(const HazardModel& model, std::uint64_t n, int ranks);

class Chaos {
 public:
  Chaos(HazardModel model, std::function<void(std::string_view)> tell);

  // Applies due hazards to the ranks of this node.
  void act(const LocalRanks& ranks, Seconds now);
  std::int64_t done() const { return done_; }

 private:
  struct Stopped {
    pid_t pid;
    int rank;
    Seconds until;
  };
  void go_on(const LocalRanks& ranks, Seconds now);
  HazardModel model_;
  std::function<void(std::string_view)> tell_;
  Seconds last_, lived_, due_;
  bool drawn_ = false;
  Hazard next_;
  std::int64_t done_ = 0;
  std::vector<Stopped> stopped_;
};

}  // namespace systole
