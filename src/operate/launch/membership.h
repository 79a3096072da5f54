#pragma once
// The membership of a run of many ranks, as a state machine: events and the time go in, actions come out. It starts no
// process and reads no clock, so tests can try every order of events.
//
// The rule is all or none: ranks live in generations. When a rank is lost, the whole generation ends. Once all its
// ranks are known to be gone, the next generation starts with new ranks, which go on from the newest checkpoint. So a
// rank never outlives its generation, and nothing is repaired while it runs.
//
//   gathering ──enough slots──▶ running ──all exit 0──────────────────▶ ended
//       ▲                         │ ├─loss──▶ killing ──all gone──▶ gathering, or ended
//       └──────all gone───────────┘ └─stop, or a node joined──▶ draining ──all gone, or time over──▶ as above
//
// Blame: one failure of a generation is the cause and the others are its victims. A short wait collects them and the
// most severe is named: killed by a signal, then hung, then its exit code. Code 76 says that a rank lost its peers: it
// is never the cause. A slot is left out if its ranks were the cause twice within an hour, with no checkpoint in
// between.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operate/launch/membership_events.h"

namespace systole {

struct MembershipOptions {
  int min_ranks = 1, max_ranks = 1;
  int restarts_per_hour = 20;
  int failures_until_left_out = 2;
  bool own_ranks = true;                 // false: a user's program; its exit codes 1, 2 and 3 have no fixed meaning
  Seconds gather_time = Seconds(300.0);  // to wait for min_ranks slots
  Seconds settle_time = Seconds(3.0);    // to wait for more than min_ranks, at first and after a node joins
  Seconds notice = Seconds(30.0);        // for ranks to save when asked to stop
  Seconds blame_time = Seconds(0.5);     // to wait for the cause after its first victim
  Seconds kill_time = Seconds(60.0);     // to wait for killed ranks to be gone
};

class Membership {
 public:
  explicit Membership(MembershipOptions options) : options_(options) {}

  std::vector<LaunchAction> handle(const LaunchEvent& event, Seconds now);

  std::uint64_t generation() const { return generation_; }  // 0 before the first
  const std::vector<RankSlot>& ranks() const { return ranks_; }
  const std::set<RankSlot>& left_out() const { return left_out_; }
  bool ended() const { return phase_ == Phase::ended; }
  std::int64_t restarts() const { return restarts_; }  // total

 private:
  enum class Phase { gathering, running, draining, killing, ended };
  // Kinds of failure; the most severe first.
  enum class Failure { killed, hung, final_code, code, victim };
  struct Fault {
    Failure failure;
    int rank;
    std::string what;  // "was killed by SIGKILL"
    int code = 0;
  };
  struct Node {
    int slots = 0;
    std::int64_t order = 0;
  };
  using Actions = std::vector<LaunchAction>;

  void on(const NodeJoined& event, Actions& actions);
  void on(const NodeLeft& event, Actions& actions);
  void on(const NodeLeaving& event, Actions& actions);
  void on(const RankExited& event, Actions& actions);
  void on(const RankHung& event, Actions& actions);
  void on(const StopRequested& event, Actions& actions);
  void on(const Progressed& event, Actions& actions);
  void on(const Tick& event, Actions& actions);

  std::vector<RankSlot> usable() const;
  bool alive(int rank) const { return alive_.contains(rank); }
  std::string name_of(int rank) const;
  void gather(Actions& actions);
  void start(std::vector<RankSlot> slots, Actions& actions);
  void suspect(Fault fault, Actions& actions);
  void decide(Actions& actions);
  void blame(const Fault& fault, Actions& actions);
  bool may_restart(const std::string& cause);
  void kill(Actions& actions, const std::string& cause = {}, int rank = -1);
  void drain(int signal, Actions& actions);
  void all_gone(Actions& actions);
  LaunchOutcome stopped() const;
  bool has_saved() const;
  void end(LaunchOutcome outcome, Actions& actions);

  MembershipOptions options_;
  Phase phase_ = Phase::gathering;
  Seconds now_{};
  std::uint64_t generation_ = 0;
  std::map<std::string, Node> nodes_;
  std::int64_t joined_ = 0, restarts_ = 0;
  std::vector<RankSlot> ranks_;  // of the running generation
  std::set<int> alive_;          // those still running
  std::vector<int> codes_;       // exit codes by rank; a signal as 128 + its number
  std::vector<Fault> faults_;    // of this generation, until one is blamed
  std::map<RankSlot, std::deque<Seconds>> failures_;
  std::set<RankSlot> left_out_;
  std::deque<Seconds> restarted_;  // within the last hour
  std::optional<Seconds> deadline_, grow_at_;
  std::optional<LaunchOutcome> outcome_;  // result of killing or draining; nothing: the next generation follows
  bool stopping_ = false, over_budget_ = false;
};

}  // namespace systole
