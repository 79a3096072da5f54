// Tries every order of events, and long random ones, in a simulated world that obeys all actions. Invariants:
// generations never overlap, their numbers only grow, limits hold, and without further events it comes to rest.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <set>

#include "ground/base/philox.h"
#include "operate/launch/membership.h"

namespace systole {
namespace {

struct World {
  MembershipOptions options;
  Membership membership;
  Seconds now{1e5};
  std::uint64_t generation = 0;
  std::vector<RankSlot> ranks;
  std::set<int> alive;  // running processes
  std::set<std::string> nodes;
  bool killed = false, asked = false, ended = false, undying = false;
  std::deque<Seconds> restarts;

  explicit World(MembershipOptions o) : options(o), membership(o) {}

  ::testing::AssertionResult give(const LaunchEvent& event) {
    if (const auto* exit = std::get_if<RankExited>(&event); exit && exit->generation == generation) {
      alive.erase(exit->rank);
    }
    if (const auto* joined = std::get_if<NodeJoined>(&event)) {
      forget(joined->node);
      nodes.insert(joined->node);
    }
    if (const auto* left = std::get_if<NodeLeft>(&event)) forget(left->node);
    for (const LaunchAction& action : membership.handle(event, now)) {
      if (auto done = carry_out(action); !done) return done;
    }
    return ::testing::AssertionSuccess();
  }

  void forget(const std::string& node) {
    nodes.erase(node);
    std::erase_if(alive, [&](int rank) { return ranks[static_cast<std::size_t>(rank)].node == node; });
  }

  ::testing::AssertionResult carry_out(const LaunchAction& action) {
    const auto wrong = [](const char* what) { return ::testing::AssertionFailure() << what; };
    if (ended) return wrong("an action after the end");
    if (const auto* start = std::get_if<StartGeneration>(&action)) {
      if (!alive.empty()) return wrong("a rank outlived its generation");
      if (start->generation != generation + 1) return wrong("generations count by one");
      const auto n = static_cast<int>(start->ranks.size());
      if (n < options.min_ranks || n > options.max_ranks) return wrong("too few or too many ranks");
      if (std::set<RankSlot>(start->ranks.begin(), start->ranks.end()).size() != start->ranks.size()) {
        return wrong("two ranks in one slot");
      }
      for (const RankSlot& slot : start->ranks) {
        if (!nodes.contains(slot.node)) return wrong("a rank on a node that is gone");
        if (membership.left_out().contains(slot)) return wrong("a rank in a slot that is left out");
      }
      generation = start->generation;
      ranks = start->ranks;
      for (int rank = 0; rank < n; ++rank) alive.insert(rank);
      killed = asked = false;
    } else if (const auto* kill = std::get_if<KillRanks>(&action)) {
      if (kill->generation != generation) return wrong("kills another generation");
      killed = true;
    } else if (const auto* ask = std::get_if<AskRanksToStop>(&action)) {
      if (ask->generation != generation) return wrong("asks another generation");
      asked = true;
    } else if (const auto* end = std::get_if<EndLaunch>(&action)) {
      ended = true;
      undying = end->outcome.sentence.find("could not be killed") != std::string::npos;
      if (!alive.empty() && !undying) return wrong("ended before all were gone");
      if (end->outcome.sentence.empty()) return wrong("ends without a sentence");
    }
    return ::testing::AssertionSuccess();
  }

  // Without further events, only executes actions: it must end, or run with nothing pending.
  ::testing::AssertionResult settle() {
    for (int i = 0; i < 40 && !ended; ++i) {
      if (killed || asked) {
        const std::set<int> dying = alive;
        for (const int rank : dying) {
          if (auto done = give(RankExited{generation, rank, 0, killed ? SIGKILL : SIGTERM}); !done) return done;
        }
      }
      now += Seconds(100.0);
      if (auto done = give(Tick{}); !done) return done;
    }
    if (!ended && alive.empty()) return ::testing::AssertionFailure() << "neither ended nor running";
    return ::testing::AssertionSuccess();
  }
};

constexpr int kKinds = 21;

LaunchEvent event_of(int kind, World& world) {
  const std::uint64_t g = world.generation;
  switch (kind) {
    case 0: return NodeJoined{"a", 2};
    case 1: return NodeJoined{"b", 2};
    case 2: return NodeLeft{"a", "gone"};
    case 3: return NodeLeft{"b", "gone"};
    case 4: return RankExited{g, 0, 0, SIGKILL};
    case 5: return RankExited{g, 1, 0, SIGKILL};
    case 6: return RankExited{g, 2, 0, SIGSEGV};
    case 7: return RankExited{g, 0, 0, 0};
    case 8: return RankExited{g, 1, 0, 0};
    case 9: return RankExited{g, 0, kExitNotSaved, 0};
    case 10: return RankExited{g, 1, kExitSaved, 0};
    case 11: return RankExited{g, 1, 1, 0};
    case 12: return RankExited{g == 0 ? 0 : g - 1, 0, 0, SIGKILL};
    case 13: return RankHung{g, 1, Seconds(10.0)};
    case 14: return StopRequested{SIGTERM};
    case 15: return StopRequested{SIGINT, true};
    case 16: return Progressed{};
    case 17: world.now += Seconds(0.6); return Tick{};
    case 18: world.now += Seconds(5.0); return Tick{};
    case 19: return NodeLeaving{"b"};
    default: world.now += Seconds(40.0); return Tick{};
  }
}

std::string trail_of(const std::vector<int>& trail) {
  std::string text;
  for (const int kind : trail) text += fmt::format(" {}", kind);
  return text;
}

// Depth first over all sequences; false at the first violation.
bool explore(const World& world, int depth, std::vector<int>& trail) {
  World rest = world;
  if (const auto settled = rest.settle(); !settled) {
    ADD_FAILURE() << settled.message() << " after" << trail_of(trail);
    return false;
  }
  if (depth == 0 || world.ended) return true;
  for (int kind = 0; kind < kKinds; ++kind) {
    World next = world;
    trail.push_back(kind);
    if (const auto given = next.give(event_of(kind, next)); !given) {
      ADD_FAILURE() << given.message() << " after" << trail_of(trail);
      return false;
    }
    if (!explore(next, depth - 1, trail)) return false;
    trail.pop_back();
  }
  return true;
}

bool is_long() { return std::getenv("SYSTOLE_TEST_LONG") != nullptr; }

TEST(MembershipExhaustive, every_sequence_of_events) {
  for (const auto& [least, most] : {std::pair(1, 2), std::pair(2, 4), std::pair(4, 4)}) {
    for (const bool own : {true, false}) {
      World world({.min_ranks = least, .max_ranks = most, .restarts_per_hour = 2, .own_ranks = own});
      ASSERT_TRUE(world.give(NodeJoined{"a", 2}));
      if (least > 2) { ASSERT_TRUE(world.give(NodeJoined{"b", 2})); }
      world.now += Seconds(4.0);
      ASSERT_TRUE(world.give(Tick{}));
      std::vector<int> trail;
      ASSERT_TRUE(explore(world, is_long() ? 5 : 3, trail)) << least << ":" << most << (own ? " own" : " theirs");
    }
  }
}

TEST(MembershipExhaustive, long_random_sequences) {
  const char* given = std::getenv("SYSTOLE_TEST_SEED");
  PhiloxStream random(given != nullptr ? std::strtoull(given, nullptr, 10) : 1);
  for (int run = 0; run < (is_long() ? 50'000 : 2'000); ++run) {
    const int least = 1 + static_cast<int>(random.below(4)), most = least + static_cast<int>(random.below(3));
    World world({.min_ranks = least, .max_ranks = most, .restarts_per_hour = 5, .own_ranks = random.below(2) == 0});
    std::vector<int> trail;
    for (int i = 0; i < 60 && !world.ended; ++i) {
      trail.push_back(static_cast<int>(random.below(kKinds)));
      if (trail.back() == 14 && random.below(4) != 0) trail.back() = 17;  // otherwise nearly every sequence ends early
      if (trail.back() == 15) trail.back() = 0;
      const auto done = world.give(event_of(trail.back(), world));
      ASSERT_TRUE(done) << "after" << trail_of(trail);
    }
    ASSERT_TRUE(world.settle()) << "after" << trail_of(trail);
  }
}

}  // namespace
}  // namespace systole
