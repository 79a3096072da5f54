#include "predict/schedule/player.h"

#include <gtest/gtest.h>

#include "ground/base/error.h"

namespace systole {
namespace {

std::vector<double> ends(const ActionGraph& graph, std::vector<double> durations) {
  std::vector<Seconds> given;
  for (const double d : durations) given.emplace_back(d);
  const SchedulePlayer player(graph);
  std::vector<double> ends;
  double last = 0;
  for (const Seconds end : player.ends(given)) {
    ends.push_back(end.count());
    last = std::max(last, ends.back());
  }
  EXPECT_EQ(player.time(given).count(), last);
  return ends;
}

TEST(SchedulePlayer, streams_of_a_device_run_side_by_side) {
  const ActionGraph graph{1, {{0, Stream::compute, 0}, {0, Stream::network, 1}, {0, Stream::compute, 0}}, {}};
  EXPECT_EQ(ends(graph, {2, 5}), (std::vector<double>{2, 5, 4}));
}

TEST(SchedulePlayer, an_action_begins_after_what_it_waits_for) {
  const ActionGraph graph{1, {{0, Stream::compute, 0}, {0, Stream::network, 1}, {0, Stream::compute, 0}}, {{2, 1}}};
  EXPECT_EQ(ends(graph, {2, 5}), (std::vector<double>{2, 5, 7}));
}

// Two stages with one forward and one backward each; a receive takes 0.25.
TEST(SchedulePlayer, a_delay_is_seen_where_nothing_hides_it) {
  enum { forward, backward, receive };
  const ActionGraph graph{2,
                          {{0, Stream::compute, forward},
                           {0, Stream::network, receive},
                           {0, Stream::compute, backward},
                           {1, Stream::network, receive},
                           {1, Stream::compute, forward},
                           {1, Stream::compute, backward}},
                          {{3, 0}, {4, 3}, {1, 5}, {2, 1}}};
  EXPECT_EQ(ends(graph, {1, 2, 0.25}), (std::vector<double>{1, 4.5, 6.5, 1.25, 2.25, 4.25}));
}

TEST(SchedulePlayer, a_player_plays_any_durations) {
  const SchedulePlayer player({2, {{0, Stream::compute, 0}, {1, Stream::compute, 1}}, {{1, 0}}});
  EXPECT_EQ(player.time(std::vector{Seconds(1), Seconds(2)}), Seconds(3));
  EXPECT_EQ(player.time(std::vector{Seconds(4), Seconds(0.5)}), Seconds(4.5));
  EXPECT_EQ(SchedulePlayer(ActionGraph{}).time({}), Seconds());
}

// Two devices that wait for each other's second action, or an action that waits for itself.
TEST(SchedulePlayer, actions_that_wait_for_each_other_are_refused) {
  const std::vector<TimedAction> two_each{
      {0, Stream::compute, 0}, {0, Stream::compute, 0}, {1, Stream::compute, 0}, {1, Stream::compute, 0}};
  EXPECT_THROW(SchedulePlayer({2, two_each, {{0, 3}, {2, 1}}}), Failure);
  EXPECT_THROW(SchedulePlayer({1, {{0, Stream::compute, 0}}, {{0, 0}}}), Failure);
}

}  // namespace
}  // namespace systole
