#include "operate/run/replica_restarts.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(ReplicaRestarts, wait_longer_each_time_and_end) {
  ReplicaRestarts restarts;
  for (const double wait : {1.0, 2.0, 4.0, 8.0, 16.0}) EXPECT_EQ(restarts.after(Seconds(0.5)), Seconds(wait));
  EXPECT_FALSE(restarts.after(Seconds(59.0)));
}

TEST(ReplicaRestarts, one_that_served_well_begins_anew) {
  ReplicaRestarts restarts;
  for (int i = 0; i < ReplicaRestarts::kMost; ++i) restarts.after(Seconds());
  EXPECT_EQ(restarts.after(Seconds(3600.0)), Seconds(1.0));
  EXPECT_EQ(restarts.after(Seconds()), Seconds(2.0));
}

}  // namespace
}  // namespace systole
