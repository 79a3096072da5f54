#include "operate/launch/launch_keys.h"

#include <gtest/gtest.h>

#include "ground/base/philox.h"

namespace systole {
namespace {

TEST(LaunchKeys, a_plan_reads_back) {
  const LaunchPlan run{.generation = 7, .order = LaunchPlan::Order::run, .ranks = {{"a", 0}, {"node b", 13}}};
  const LaunchPlan again = parse_plan(to_text(run)).value();
  EXPECT_EQ(again.generation, 7u);
  EXPECT_EQ(again.ranks, run.ranks);
  const LaunchPlan end{.generation = 9, .order = LaunchPlan::Order::end, .outcome = {75, "it\nsaved"}};
  EXPECT_EQ(parse_plan(to_text(end))->outcome, (LaunchOutcome{75, "it saved"}));
  EXPECT_EQ(parse_plan(to_text(end))->order, LaunchPlan::Order::end);
}

TEST(LaunchKeys, broken_text_is_an_error) {
  const std::string text = to_text(LaunchPlan{.generation = 7, .ranks = {{"a", 0}, {"b", 1}}});
  for (std::size_t n = 0; n + 2 < text.size(); ++n) EXPECT_FALSE(parse_plan(text.substr(0, n)).ok()) << n;
  PhiloxStream random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string changed = text;
    for (int c = 0; c < 3; ++c) changed[random.below(changed.size())] = static_cast<char>(random.below(256));
    (void)parse_plan(changed);
    (void)parse_offer(changed);
    (void)parse_exit(7, changed, changed);
  }
  EXPECT_FALSE(parse_plan("run 1 0 0 99999999\n\n").ok());
}

TEST(LaunchKeys, offers_and_exits_read_back) {
  const std::optional<NodeOffer> offer = parse_offer(to_text(NodeOffer{4, "10.0.0.1", "hash of it"}));
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(offer->slots, 4);
  EXPECT_EQ(offer->workload, "hash of it");
  const RankExited exit{3, 12, 0, 9};
  const std::optional<RankExited> read = parse_exit(3, exits_key(3) + "12", exit_text(exit));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->rank, 12);
  EXPECT_EQ(read->signal, 9);
  EXPECT_FALSE(parse_exit(3, exits_key(3) + "x", "0 9").has_value());
}

}  // namespace
}  // namespace systole
