#include "operate/launch/membership.h"

#include <gtest/gtest.h>

#include <csignal>

namespace systole {
namespace {

// A membership with a clock, and its last actions.
struct Launch {
  explicit Launch(MembershipOptions options) : membership(options) {}
  Membership membership;
  Seconds now{1000.0};
  std::vector<LaunchAction> last;

  Launch& operator()(const LaunchEvent& event) {
    last = membership.handle(event, now);
    return *this;
  }
  Launch& after(double seconds) {
    now += Seconds(seconds);
    return (*this)(Tick{});
  }
  Launch& exits(int rank, int code, int signal = 0) {
    return (*this)(RankExited{membership.generation(), rank, code, signal});
  }
  Launch& killed(int rank) { return exits(rank, 0, SIGKILL); }
  // All ranks but these are gone, as after KillRanks.
  Launch& all_gone() {
    const auto n = static_cast<int>(membership.ranks().size());
    const std::uint64_t generation = membership.generation();
    for (int rank = 0; rank < n && membership.generation() == generation; ++rank) {
      std::vector<LaunchAction> out = membership.handle(RankExited{generation, rank, 0, SIGKILL}, now);
      if (!out.empty()) last = std::move(out);
    }
    return *this;
  }
  template <typename Action>
  const Action* find() const {
    for (const LaunchAction& action : last) {
      if (const Action* found = std::get_if<Action>(&action)) return found;
    }
    return nullptr;
  }
  int started() const { return find<StartGeneration>() ? static_cast<int>(find<StartGeneration>()->ranks.size()) : 0; }
  std::string told() const {
    std::string text;
    for (const LaunchAction& action : last) {
      if (const Tell* tell = std::get_if<Tell>(&action)) text += tell->sentence + "\n";
    }
    return text;
  }
  LaunchOutcome outcome() const { return find<EndLaunch>() ? find<EndLaunch>()->outcome : LaunchOutcome{-1, ""}; }
};

MembershipOptions ranks(int min, int max) { return {.min_ranks = min, .max_ranks = max}; }

TEST(Membership, ranks_that_stop_at_the_budget_end_the_launch_by_it) {
  Launch l(ranks(2, 2));
  l(NodeJoined{"a", 2}).exits(1, kExitOverBudget);
  EXPECT_EQ(l.find<KillRanks>(), nullptr) << "the others are about to end by themselves";
  EXPECT_NE(l.find<AskRanksToStop>(), nullptr);
  EXPECT_EQ(l.exits(0, kExitOverBudget).outcome(),
            (LaunchOutcome{kExitOverBudget, "its budget is used: stopped with its state saved"}));
}

TEST(Membership, programs_are_asked_to_stop_at_the_budget) {
  MembershipOptions options = ranks(2, 2);
  options.own_ranks = false;
  Launch l(options);
  l(NodeJoined{"a", 2})(StopRequested{SIGTERM, false, true});
  EXPECT_EQ(l.find<AskRanksToStop>()->signal, SIGTERM);
  EXPECT_EQ(l.exits(0, 0).exits(1, 1).outcome().exit_code, kExitOverBudget);
  Launch none(options);
  none(StopRequested{SIGTERM, false, true});
  EXPECT_EQ(none.outcome().exit_code, kExitOverBudget) << "before any rank ran";
}

TEST(Membership, starts_when_all_have_a_place_and_is_done_when_all_are) {
  Launch l(ranks(4, 4));
  EXPECT_EQ(l(NodeJoined{"a", 2}).started(), 0);
  EXPECT_EQ(l(NodeJoined{"b", 2}).started(), 4);
  EXPECT_EQ(l.find<StartGeneration>()->generation, 1u);
  EXPECT_EQ(l.membership.ranks()[2], (RankSlot{"b", 0}));
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(l.exits(rank, 0).last.empty());
  EXPECT_EQ(l.exits(3, 0).outcome(), (LaunchOutcome{0, "4 ranks finished"}));
  EXPECT_TRUE(l(StopRequested{SIGTERM}).last.empty()) << "it has ended";
}

TEST(Membership, takes_no_more_ranks_than_allowed_and_waits_a_little_for_more_than_needed) {
  Launch l(ranks(2, 3));
  EXPECT_EQ(l(NodeJoined{"a", 2}).started(), 0);
  EXPECT_EQ(l.after(1).started(), 0);
  EXPECT_EQ(l.after(3).started(), 2);
  Launch many(ranks(2, 3));
  EXPECT_EQ(many(NodeJoined{"a", 8}).started(), 3);
}

TEST(Membership, says_how_many_places_were_missing) {
  Launch l(ranks(4, 4));
  l(NodeJoined{"a", 3});
  EXPECT_EQ(l.after(299).outcome().exit_code, -1);
  EXPECT_EQ(l.after(2).outcome(), (LaunchOutcome{1, "3 of the 4 ranks needed have a place after 5 min 00 s"}));
}

TEST(Membership, what_lost_a_node_for_good_may_be_begun_again) {
  Launch l(ranks(4, 4));
  EXPECT_EQ(l(NodeJoined{"a", 2})(NodeJoined{"b", 2}).started(), 4);
  l(NodeLeft{"b", "its lease ran out"}).killed(0).killed(1);
  EXPECT_EQ(l.after(301).outcome(), (LaunchOutcome{76, "2 of the 4 ranks needed have a place after 5 min 00 s"}));
}

TEST(Membership, a_lost_rank_ends_its_generation_and_the_next_waits_for_all_to_be_gone) {
  Launch l(ranks(3, 3));
  l(NodeJoined{"a", 3}).killed(1);
  ASSERT_NE(l.find<KillRanks>(), nullptr);
  EXPECT_EQ(l.find<KillRanks>()->generation, 1u);
  EXPECT_EQ(l.told(), "rank 1 was killed by SIGKILL: generation 1 ends\n");
  EXPECT_EQ(l.killed(0).started(), 0) << "rank 2 still lives";
  EXPECT_EQ(l.killed(2).started(), 3);
  EXPECT_EQ(l.membership.generation(), 2u);
  // Events of generation 1 are ignored now.
  EXPECT_TRUE(l(RankExited{1, 0, 1, 0}).last.empty());
  EXPECT_TRUE(l(RankHung{1, 0, Seconds(9.0)}).last.empty());
}

TEST(Membership, the_cause_is_named_and_not_its_victims) {
  Launch l(ranks(3, 3));
  l(NodeJoined{"a", 3});
  EXPECT_TRUE(l.exits(0, kExitNotSaved).last.empty()) << "it lost a peer: which one?";
  EXPECT_TRUE(l.exits(2, kExitNotSaved).last.empty());
  EXPECT_EQ(l.killed(1).told(), "rank 1 was killed by SIGKILL: generation 1 ends\n");
  EXPECT_EQ(l.membership.generation(), 2u);
  // A victim without a cause, as after a cut socket: nobody is blamed, and the run goes on.
  l.exits(0, kExitNotSaved).after(1);
  EXPECT_EQ(l.told(), "rank 0 lost the others: generation 2 ends\n");
  l.all_gone().exits(0, kExitNotSaved).after(1).all_gone();
  EXPECT_TRUE(l.membership.left_out().empty());
  EXPECT_EQ(l.membership.generation(), 4u);
}

TEST(Membership, a_hung_rank_is_killed_with_its_generation) {
  Launch l(ranks(2, 2));
  l(NodeJoined{"a", 2})(RankHung{1, 1, Seconds(12.0)});
  ASSERT_NE(l.find<KillRanks>(), nullptr);
  EXPECT_EQ(l.told(), "rank 1 gave no sign of life for 12.0 s: generation 1 ends\n");
  EXPECT_EQ(l.all_gone().started(), 2);
}

TEST(Membership, a_rank_that_fails_twice_is_left_out_and_named) {
  Launch l(ranks(2, 3));
  l(NodeJoined{"a", 3}).killed(2).all_gone();
  EXPECT_EQ(l.started(), 3);
  l.killed(2);
  EXPECT_NE(l.told().find("rank 2 was killed by SIGKILL, 2 times"), std::string::npos) << l.told();
  EXPECT_NE(l.told().find("slot 2 is excluded from now on"), std::string::npos);
  EXPECT_EQ(l.all_gone().started(), 2);
  // Below min_ranks it gives up, and says why.
  l.killed(0).all_gone();
  EXPECT_EQ(l.killed(0).all_gone().outcome(),
            (LaunchOutcome{1, "rank 0 was killed by SIGKILL, 2 times in a row: 1 of the 2 ranks needed are left"}));
}

TEST(Membership, a_checkpoint_or_an_hour_in_between_forgives) {
  Launch l(ranks(2, 2));
  l(NodeJoined{"a", 2});
  for (int i = 0; i < 5; ++i) {
    l.killed(1).all_gone()(Progressed{});
    EXPECT_TRUE(l.membership.left_out().empty());
  }
  l.killed(1).all_gone();
  l.after(3700).killed(1).all_gone();
  EXPECT_TRUE(l.membership.left_out().empty());
  EXPECT_EQ(l.membership.generation(), 8u);
}

TEST(Membership, restarts_are_capped_by_the_hour) {
  MembershipOptions options = ranks(2, 2);
  options.restarts_per_hour = 3;
  Launch l(options);
  l(NodeJoined{"a", 2});
  for (int i = 0; i < 3; ++i) l.killed(0).all_gone()(Progressed{});
  EXPECT_EQ(l.membership.generation(), 4u);
  l.after(3601);
  for (int i = 0; i < 3; ++i) l.killed(0).all_gone()(Progressed{});
  EXPECT_EQ(l.membership.generation(), 7u);
  EXPECT_EQ(l.killed(0).all_gone().outcome(),
            (LaunchOutcome{1, "rank 0 was killed by SIGKILL, and 3 restarts within an hour are as many as allowed"}));
}

TEST(Membership, an_answer_of_our_own_ranks_is_final_and_one_of_a_users_program_is_not) {
  for (const int code : {kExitNo, kExitUsage, kExitMissing}) {
    Launch l(ranks(2, 2));
    l(NodeJoined{"a", 2}).exits(1, code).after(1);
    EXPECT_NE(l.find<KillRanks>(), nullptr);
    EXPECT_EQ(l.all_gone().outcome(), (LaunchOutcome{code, fmt::format("rank 1 ended with exit code {}", code)}));
  }
  MembershipOptions options = ranks(2, 2);
  options.own_ranks = false;
  Launch l(options);
  EXPECT_EQ(l(NodeJoined{"a", 2}).exits(1, 1).after(1).all_gone().membership.generation(), 2u);
}

TEST(Membership, asked_to_stop_it_asks_its_ranks_and_says_whether_they_saved) {
  Launch saved(ranks(2, 2));
  saved(NodeJoined{"a", 2})(StopRequested{SIGTERM});
  ASSERT_NE(saved.find<AskRanksToStop>(), nullptr);
  EXPECT_EQ(saved.find<AskRanksToStop>()->signal, SIGTERM);
  EXPECT_EQ(saved.exits(0, kExitSaved).exits(1, kExitSaved).outcome().exit_code, kExitSaved);

  Launch late(ranks(2, 2));  // one of them does not end
  late(NodeJoined{"a", 2})(StopRequested{SIGTERM}).exits(0, kExitNotSaved);
  EXPECT_EQ(late.after(29).find<KillRanks>(), nullptr);
  EXPECT_NE(late.after(2).find<KillRanks>(), nullptr);
  EXPECT_EQ(late.killed(1).outcome().exit_code, kExitNotSaved);

  Launch gone(ranks(2, 2));  // one saved, and did not wait for the other, which is gone
  gone(NodeJoined{"a", 2})(StopRequested{SIGTERM}).killed(1);
  EXPECT_EQ(gone.exits(0, kExitSaved).outcome().exit_code, kExitSaved);

  Launch at_once(ranks(2, 2));
  at_once(NodeJoined{"a", 2})(StopRequested{SIGINT})(StopRequested{SIGINT, true});
  EXPECT_NE(at_once.find<KillRanks>(), nullptr);
  EXPECT_EQ(at_once.all_gone().outcome().exit_code, kExitInterrupted);

  Launch finished(ranks(2, 2));
  finished(NodeJoined{"a", 2})(StopRequested{SIGTERM}).exits(0, 0);
  EXPECT_EQ(finished.exits(1, 0).outcome().exit_code, kExitDone);

  MembershipOptions options = ranks(2, 2);  // a user's program that exits 0 after a stop request has not finished
  options.own_ranks = false;
  Launch theirs(options);
  theirs(NodeJoined{"a", 2})(StopRequested{SIGTERM}).exits(0, 0);
  EXPECT_EQ(theirs.exits(1, 0).outcome().exit_code, kExitSaved);

  Launch between(ranks(2, 2));  // in the middle of a restart
  between(NodeJoined{"a", 2}).killed(0)(StopRequested{SIGTERM});
  EXPECT_EQ(between.killed(1).outcome().exit_code, kExitNotSaved);
  Launch before(ranks(2, 2));
  EXPECT_EQ(before(StopRequested{SIGTERM}).outcome().exit_code, kExitNotSaved);
}

// Slurm signals the nodes of a step a second time once the first of them has ended.
TEST(Membership, asked_again_after_a_rank_has_saved_it_ends_the_others_and_has_saved) {
  Launch saved(ranks(2, 2));
  saved(NodeJoined{"a", 2})(StopRequested{SIGTERM}).exits(0, kExitSaved)(StopRequested{SIGTERM, true});
  EXPECT_NE(saved.find<KillRanks>(), nullptr);
  EXPECT_EQ(saved.killed(1).outcome(), (LaunchOutcome{kExitSaved, "stopped with its state saved"}));

  Launch late(ranks(2, 2));  // while those that did not end in time are killed
  late(NodeJoined{"a", 2})(StopRequested{SIGTERM}).exits(0, kExitSaved).after(31)(StopRequested{SIGTERM, true});
  EXPECT_EQ(late.killed(1).outcome().exit_code, kExitSaved);

  Launch budget(ranks(2, 2));
  budget(NodeJoined{"a", 2}).exits(0, kExitOverBudget)(StopRequested{SIGTERM, true});
  EXPECT_EQ(budget.killed(1).outcome(),
            (LaunchOutcome{kExitOverBudget, "its budget is used: stopped with its state saved"}));

  Launch lost(ranks(2, 2));  // no complete checkpoint is known
  lost(NodeJoined{"a", 2})(StopRequested{SIGTERM}).exits(0, kExitNotSaved)(StopRequested{SIGTERM, true});
  EXPECT_EQ(lost.killed(1).outcome().exit_code, kExitInterrupted);

  MembershipOptions options = ranks(2, 2);  // each rank of a user's program saves its own
  options.own_ranks = false;
  Launch theirs(options);
  theirs(NodeJoined{"a", 2})(StopRequested{SIGTERM}).exits(0, kExitSaved)(StopRequested{SIGTERM, true});
  EXPECT_EQ(theirs.killed(1).outcome().exit_code, kExitInterrupted);
}

TEST(Membership, a_node_that_leaves_takes_its_ranks_and_one_that_joins_makes_it_grow) {
  Launch l(ranks(2, 4));
  l(NodeJoined{"a", 2})(NodeJoined{"b", 2});
  EXPECT_EQ(l.started(), 4);
  l(NodeLeft{"b", "its lease ran out"});
  EXPECT_NE(l.told().find("node b is gone (its lease ran out), with 2 ranks: generation 1 ends"), std::string::npos);
  EXPECT_EQ(l.killed(0).killed(1).started(), 2) << "those of b are gone with it";
  EXPECT_TRUE(l.membership.left_out().empty());

  l(NodeJoined{"c", 1});
  EXPECT_TRUE(l.last.empty());
  l.after(5);
  ASSERT_NE(l.find<AskRanksToStop>(), nullptr) << "saves first";
  l.exits(0, kExitSaved);
  EXPECT_EQ(l.exits(1, kExitSaved).started(), 3);
  EXPECT_EQ(l.membership.restarts(), 1) << "growing is no failure";
}

TEST(Membership, a_fixed_number_of_ranks_waits_for_a_lost_node_to_come_back) {
  Launch l(ranks(2, 2));
  l(NodeJoined{"a", 1})(NodeJoined{"b", 1})(NodeLeft{"b", "gone"}).killed(0);
  EXPECT_EQ(l.started(), 0);
  EXPECT_EQ(l(NodeJoined{"b", 1}).started(), 2);
  l(NodeJoined{"b", 1});  // its agent died and returned before its lease expired
  EXPECT_NE(l.find<KillRanks>(), nullptr);
  EXPECT_EQ(l.killed(0).started(), 2);
}

TEST(Membership, a_node_that_is_asked_to_go_saves_and_the_others_go_on) {
  Launch l(ranks(2, 4));
  l(NodeJoined{"a", 2})(NodeJoined{"b", 2})(NodeLeaving{"b"});
  ASSERT_NE(l.find<AskRanksToStop>(), nullptr);
  for (int rank = 0; rank < 4; ++rank) l.exits(rank, kExitSaved);
  EXPECT_EQ(l.started(), 2);
  l(NodeLeft{"b", "said so"});
  EXPECT_TRUE(l.last.empty());
  l(NodeLeaving{"a"});  // no node would be left: it stops
  l.exits(0, kExitSaved);
  EXPECT_EQ(l.exits(1, kExitSaved).outcome().exit_code, kExitSaved);
}

TEST(Membership, what_cannot_be_killed_is_named) {
  Launch l(ranks(2, 2));
  l(NodeJoined{"a", 2}).killed(0);
  EXPECT_EQ(l.after(61).outcome(), (LaunchOutcome{1, "rank 1 could not be killed within 60.0 s"}));
}

}  // namespace
}  // namespace systole
