#include "operate/launch/rank_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "operate/launch/node_work.h"

namespace systole {
namespace {

TEST(RankEnvironment, is_read_as_it_was_written) {
  RankIdentity identity;
  identity.place = {
      .generation = 3, .rank = 5, .num_ranks = 8, .local_rank = 1, .local_ranks = 4, .node = 1, .num_nodes = 2};
  identity.rendezvous = {"10.0.0.1", 7000};
  identity.token = RunToken::make().value();
  identity.run = "run-1";
  identity.workload = "abc";
  identity.host = "10.0.0.2";
  identity.tls = true;
  const Environment variables = systole_environment(identity);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value->c_str(), 1);
  const RankIdentity read = rank_identity_from_environment().value();
  EXPECT_EQ(read.place.rank, 5);
  EXPECT_EQ(read.place.generation, 3u);
  EXPECT_EQ(read.place.num_nodes, 2);
  EXPECT_EQ(read.rendezvous, identity.rendezvous);
  EXPECT_TRUE(read.token.equals(identity.token.bytes()));
  EXPECT_EQ(read.workload, "abc");
  EXPECT_EQ(read.host, "10.0.0.2");
  EXPECT_TRUE(read.tls);
  ::setenv("SYSTOLE_RANK", "8", 1);
  EXPECT_FALSE(rank_identity_from_environment().ok());
  ::setenv("SYSTOLE_RANK", "x", 1);
  EXPECT_EQ(rank_identity_from_environment().error().message, "SYSTOLE_RANK is 'x', no number");
  for (const auto& [name, value] : variables) {
    ::unsetenv(name.c_str());
    EXPECT_FALSE(rank_identity_from_environment().ok()) << name;
    ::setenv(name.c_str(), value->c_str(), 1);
  }
  for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
}

TEST(RankEnvironment, places_count_within_nodes_and_over_all) {
  const LaunchPlan plan{.generation = 2, .ranks = {{"a", 0}, {"a", 2}, {"b", 1}, {"a", 3}}};
  const RankPlace last = place_of(plan, 3), third = place_of(plan, 2);
  EXPECT_EQ(last.local_rank, 2);
  EXPECT_EQ(last.local_ranks, 3);
  EXPECT_EQ(last.node, 0);
  EXPECT_EQ(third.local_rank, 0);
  EXPECT_EQ(third.local_ranks, 1);
  EXPECT_EQ(third.node, 1);
  EXPECT_EQ(third.num_nodes, 2);
  EXPECT_EQ(third.num_ranks, 4);
}

}  // namespace
}  // namespace systole
