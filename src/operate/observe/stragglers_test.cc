#include "operate/observe/stragglers.h"

#include <gtest/gtest.h>

#include <memory>

#include "operate/observe/rank_report.h"

namespace systole {
namespace {

// Simulated ranks: a test gives each rank's own time per step, and the waits of the others follow.
class Job {
 public:
  explicit Job(int ranks, std::int64_t generation = 1) {
    for (int r = 0; r < ranks; ++r) {
      logs_.push_back(std::make_unique<FlightLog>(FlightIdentity{100 + r, r, ranks, generation, 9, Seconds(1.0)}));
      site_ = logs_.back()->add_site("all_reduce f32[64] over data");
    }
  }
  using Own = std::function<StageTimes(int rank)>;
  void step(const Own& own) {
    ++step_;
    Seconds longest;
    for (std::size_t r = 0; r < logs_.size(); ++r) longest = std::max(longest, whole_time(own(static_cast<int>(r))));
    for (std::size_t r = 0; r < logs_.size(); ++r) {
      StageTimes times = own(static_cast<int>(r));
      at(times, RankStage::waiting) = longest - whole_time(times);
      logs_[r]->set_step(step_);
      logs_[r]->enter(RankStage::other, now);
      logs_[r]->step_ended(step_, now, times);
    }
    now += longest;
  }
  std::vector<Straggler> look(Seconds later = {}) {
    now += later;
    std::vector<Flight> flights;
    for (const auto& log : logs_) flights.push_back(log->read());
    return watch.look(flights, now);
  }
  FlightLog& log(int rank) { return *logs_[static_cast<std::size_t>(rank)]; }
  void waits(int rank, int peer, std::uint64_t position) {
    log(rank).in_site(site_, 7, now);
    log(rank).enter(RankStage::waiting, now);
    log(rank).awaits(peer, false, position, now);
  }
  // Looks every tenth of a second; returns the first report.
  std::vector<Straggler> look_for(Seconds time) {
    for (int i = 0; i < static_cast<int>(time.count() * 10); ++i) {
      std::vector<Straggler> told = look(Seconds(0.1));
      if (!told.empty()) return told;
    }
    return {};
  }

  Seconds now{1000.0};
  StragglerWatch watch;

 private:
  std::vector<std::unique_ptr<FlightLog>> logs_;
  std::int64_t step_ = 0;
  int site_ = 0;
};

StageTimes usual(int rank) {
  StageTimes t{};
  at(t, RankStage::data_wait) = Seconds(0.001);
  at(t, RankStage::forward) = Seconds(0.010 + 0.002 * rank);
  at(t, RankStage::backward) = Seconds(0.020);
  at(t, RankStage::transfer) = Seconds(0.003);
  return t;
}

TEST(Stragglers, a_slow_stage_is_told_within_three_steps_once_and_of_the_right_rank) {
  for (const RankStage stage : {RankStage::data_wait, RankStage::forward, RankStage::backward, RankStage::transfer}) {
    Job job(4);
    for (int i = 0; i < 20; ++i) {
      job.step(usual);
      ASSERT_TRUE(job.look().empty());
    }
    const auto slow = [&](int rank) {
      StageTimes t = usual(rank);
      if (rank == 2) at(t, stage) += Seconds(0.1);
      return t;
    };
    std::vector<Straggler> told;
    int steps = 0;
    while (told.empty() && steps < 10) {
      job.step(slow);
      ++steps;
      told = job.look();
    }
    ASSERT_EQ(told.size(), 1u) << name_of(stage);
    EXPECT_LE(steps, 3);
    EXPECT_EQ(told[0].kind, Straggler::Kind::slow);
    EXPECT_EQ(told[0].rank, 2);
    EXPECT_EQ(told[0].stage, stage);
    for (int i = 0; i < 10; ++i) {
      job.step(slow);
      EXPECT_TRUE(job.look().empty()) << "told twice";
    }
  }
}

TEST(Stragglers, one_long_step_is_no_alarm_and_a_machine_without_cores_is_none) {
  Job job(4);
  for (int i = 0; i < 200; ++i) {
    job.step([&](int rank) {
      StageTimes t = usual(rank);
      if (i % 9 == 0 && rank == i % 4) at(t, RankStage::forward) += Seconds(0.3);
      if (rank == 1) at(t, RankStage::cores) += Seconds(0.2);
      return t;
    });
    EXPECT_TRUE(job.look().empty()) << i;
  }
}

TEST(Stragglers, the_first_steps_are_not_judged) {
  Job job(2);
  for (int i = 0; i < 3; ++i) {
    job.step([&](int rank) {
      StageTimes t = usual(rank);
      if (rank == 1) at(t, RankStage::forward) += Seconds(2.0);
      return t;
    });
    EXPECT_TRUE(job.look().empty());
  }
}

TEST(Stragglers, who_is_stuck_is_at_the_end_of_the_chain) {
  Job job(4);
  for (int i = 0; i < 10; ++i) job.step(usual);
  job.look();
  job.log(2).enter(RankStage::forward, job.now);  // and stays there
  job.waits(0, 1, 40);
  job.waits(1, 2, 40);
  job.waits(3, 0, 40);
  EXPECT_TRUE(job.look_for(Seconds(1.0)).empty()) << "too soon";
  const std::vector<Straggler> told = job.look_for(Seconds(0.9));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, Straggler::Kind::stuck);
  EXPECT_EQ(told[0].rank, 2);
  EXPECT_EQ(told[0].stage, RankStage::forward);
  EXPECT_EQ(told[0].collective, "all_reduce f32[64] over data");
  EXPECT_NE(to_string(told[0]).find("rank 2 is stuck: in forward of step 10 for"), std::string::npos)
      << to_string(told[0]);
}

// A rank stopped while waiting: the message that it waits for was sent, but not received.
TEST(Stragglers, a_stopped_process_has_lost_nothing) {
  Job job(2);
  for (int i = 0; i < 10; ++i) job.step(usual);
  job.look();
  job.watch = StragglerWatch({.is_stopped = [](const FlightIdentity& rank) { return rank.rank == 1; }});
  job.look();
  job.waits(0, 1, 41);
  job.waits(1, 0, 40);
  const std::vector<Straggler> told = job.look_for(Seconds(2.0));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, Straggler::Kind::stuck);
  EXPECT_EQ(told[0].rank, 1);
  EXPECT_NE(to_string(told[0]).find("its process stopped, of step 10"), std::string::npos) << to_string(told[0]);
}

TEST(Stragglers, a_lost_message_is_found_where_its_sender_is_ahead) {
  Job job(4);
  for (int i = 0; i < 10; ++i) job.step(usual);
  job.look();
  job.waits(0, 3, 40);  // rank 3 has already passed it
  job.waits(1, 0, 41);
  job.waits(2, 1, 41);
  job.waits(3, 2, 41);
  const std::vector<Straggler> told = job.look_for(Seconds(2.0));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, Straggler::Kind::lost_message);
  EXPECT_EQ(told[0].rank, 3);
  EXPECT_EQ(told[0].peer, 0);
}

TEST(Stragglers, checkpoints_and_evaluations_may_take_long) {
  Job job(2);
  for (int i = 0; i < 10; ++i) job.step(usual);
  job.look();
  job.log(0).enter(RankStage::checkpoint, job.now);
  job.waits(1, 0, 40);
  EXPECT_TRUE(job.look_for(Seconds(20.0)).empty());
  EXPECT_EQ(job.look_for(Seconds(15.0)).size(), 1u);
}

TEST(Stragglers, nobody_waits_and_nobody_is_named) {
  Job job(2);
  for (int i = 0; i < 10; ++i) job.step(usual);
  job.look();
  EXPECT_TRUE(job.look_for(Seconds(60.0)).empty());
  Job paused(2);  // the observer itself was stopped
  for (int i = 0; i < 10; ++i) paused.step(usual);
  paused.look();
  paused.waits(1, 0, 40);
  EXPECT_TRUE(paused.look(Seconds(100.0)).empty());
}

TEST(Stragglers, clocks_that_disagree_change_nothing) {
  Job job(2);
  job.log(1).enter(RankStage::startup, Seconds(4600.0));  // an hour ahead
  for (int i = 0; i < 10; ++i) {
    job.step(usual);
    job.log(1).enter(RankStage::other, job.now + Seconds(3600.0));
    EXPECT_TRUE(job.look(Seconds(0.1)).empty());
  }
  job.log(1).enter(RankStage::backward, job.now + Seconds(3600.0));
  job.waits(0, 1, 40);
  const std::vector<Straggler> told = job.look_for(Seconds(2.0));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rank, 1);
}

TEST(Stragglers, who_does_another_collective_than_the_others_is_the_odd_one) {
  Job job(4);
  for (int rank = 0; rank < 4; ++rank) {
    const int other = job.log(rank).add_site("all_reduce f32[3] over data");
    if (rank == 1) {
      job.log(rank).in_site(other, 7, job.now);
    } else {
      job.waits(rank, 1, 40);
    }
  }
  std::vector<Flight> flights;
  for (int rank = 0; rank < 4; ++rank) flights.push_back(job.log(rank).read());
  EXPECT_FALSE(what_ended(flights)) << "no rank complained";
  job.log(0).failed("rank 0 is in all_reduce #7, exchange 0 of 256 B, but rank 1 sent it all_reduce #7 of 12 B",
                    ErrorCode::collective_mismatch);
  flights[0] = job.log(0).read();
  const std::optional<Straggler> odd = what_ended(flights);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->rank, 1);
  EXPECT_EQ(odd->kind, Straggler::Kind::mismatch);
  // A rank that had not come that far at the end says nothing, and is not the odd one.
  job.log(3).in_site(0, 6, job.now);
  flights[3] = job.log(3).read();
  const std::optional<Straggler> same = what_ended(flights);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->rank, 1);
}

TEST(RankReports, the_waterfall_names_who_held_the_others_up) {
  std::vector<std::vector<Flight>> by_rank;
  for (int rank = 0; rank < 3; ++rank) {
    FlightLog log({100 + rank, rank, 3, 1, 9, Seconds(1.0)});
    for (int step = 1; step <= 10; ++step) {
      StageTimes t = usual(rank);
      if (rank == 1) at(t, RankStage::backward) += Seconds(0.05);
      if (rank != 1) at(t, RankStage::waiting) = Seconds(0.05);
      for (int s = 0; s < kNumStages; ++s) log.spent(static_cast<RankStage>(s), t[static_cast<std::size_t>(s)]);
      log.step_ended(step, Seconds(step), t);
    }
    log.mark(FlightMark::ended, Seconds(20.0));
    by_rank.push_back({log.read()});
  }
  StragglerFound held;
  held.text = "rank 1 is slow: something";
  Recovered recovered{
      2, "rank 1 was killed by SIGKILL", Seconds(0.02), Seconds(0.1), Seconds(1.0), Seconds(0.2), Seconds(0.05)};
  const RanksReport report = ranks_report(by_rank, {{Seconds(1), held}, {Seconds(2), recovered}});
  EXPECT_EQ(report.slowest, 1);
  EXPECT_EQ(report.slowest_in, RankStage::backward);
  EXPECT_NEAR(report.beyond.count(), 0.05, 1e-9);
  const std::string text = to_text(report);
  EXPECT_NE(text.find("rank 1 held the others up in backward: 50.0 ms a step more than they take"), std::string::npos)
      << text;
  EXPECT_NE(text.find("rank 1 is slow: something\n"), std::string::npos);
  EXPECT_NE(text.find("detected 20.0 ms, ended 100 ms, restarted 1.00 s, restored 200 ms, first step 50.0 ms"),
            std::string::npos)
      << text;
  recovered.from_step = 100, recovered.steps_lost = 12;
  EXPECT_EQ(goes_on_from(recovered), ", from the checkpoint of step 100, 12 steps again");
  recovered.from_step = 0, recovered.steps_lost = 1;
  EXPECT_EQ(goes_on_from(recovered), ", from the start, as there is no checkpoint, 1 step again");
  const Node again = to_node(ranks_report(by_rank, {{Seconds(2), recovered}}));
  EXPECT_EQ(again.find("recovered")->items()[0].find("steps_lost")->text(), "1");
  const Node node = to_node(report);
  EXPECT_EQ(node.find("ranks")->items().size(), 3u);
  EXPECT_EQ(node.find("slowest")->find("stage")->text(), "backward");
}

}  // namespace
}  // namespace systole
