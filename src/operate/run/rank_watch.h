#pragma once
// The agent's observer of ranks: reports a straggler in one sentence, and how long each recovery took. Both are kept as
// events under ranks/agent.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/store/store.h"
#include "operate/launch/launch_watch.h"
#include "operate/observe/event_file.h"
#include "operate/observe/stragglers.h"

namespace systole {

// Converts moments of another clock to ours. The offset is bounded by pairs of observations; it is the one nearest to
// zero within the bounds.
class OtherClock {
 public:
  // Its `moment` was between two of ours.
  void saw(Seconds moment, Seconds after, Seconds before) {
    least_ = std::max(least_, after - moment);
    most_ = std::min(most_, before - moment);
  }
  Seconds here(Seconds moment) const { return moment + std::min(std::max(Seconds(), least_), most_); }

 private:
  Seconds least_{-1e18}, most_{1e18};  // bounds of the offset: ours minus its
};

class RankWatch final : public LaunchWatch {
 public:
  // `folder`: the run's. `launch`: id of this launch in its flight logs. Errors: of the event file.
  static Result<std::unique_ptr<RankWatch>> open(const std::string& folder, std::uint64_t launch,
                                                 const std::string& command, Clock& clock,
                                                 std::function<void(std::string_view)> tell);
  Status close() { return events_->close(); }

  void starts(std::uint64_t generation, int ranks, Seconds now) override;
  void ends(std::uint64_t generation, const std::string& cause, int rank, Seconds now) override;
  void look(Seconds now) override;

 private:
  RankWatch(std::string folder, std::uint64_t launch, std::unique_ptr<Store> store, Clock& clock,
            std::function<void(std::string_view)> tell);
  std::vector<Flight> flights();
  std::string find(int rank) const;
  void compare_clocks(const std::vector<Flight>& flights, Seconds now);
  Seconds here(const Flight& flight, Seconds moment) const;
  std::optional<Seconds> all_at(const std::vector<Flight>& flights, FlightMark mark, Seconds begin, Seconds now) const;
  void hear(const Straggler& straggler);
  void follow_recovery(const std::vector<Flight>& flights, Seconds now);
  void add(EventBody body);

  std::string folder_;
  std::uint64_t launch_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> own_;  // ranks/agent
  Clock& clock_;
  std::function<void(std::string_view)> tell_;
  std::unique_ptr<EventFile> events_;
  StragglerWatch stragglers_;
  Seconds opened_, started_, ended_, looked_at_;
  std::uint64_t generation_ = 0;
  int straggler_ = -1;                 // straggler of this generation that was reported as permanent
  std::int64_t reached_ = 0;           // last step completed in a generation that was lost
  std::vector<std::string> files_;     // flight log by rank, of this generation; empty: not found yet
  std::vector<OtherClock> clocks_;     // by rank
  std::vector<Seconds> newest_;        // by rank: the latest moment seen of its clock
  std::optional<Recovered> recovery_;  // in progress
};

}  // namespace systole
