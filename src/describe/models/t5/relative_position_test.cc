#include "describe/models/t5/relative_position.h"

#include <gtest/gtest.h>

#include "describe/ir/evaluate.h"

namespace systole {
namespace {

// The first distance of each bucket, backwards from the query.
std::vector<std::int64_t> starts(const RelativePositions& positions) {
  std::vector<std::int64_t> found;
  for (std::int64_t away = 0; away < 200; ++away) {
    const std::int64_t bucket = bucket_of(-away, positions);
    if (bucket == static_cast<std::int64_t>(found.size())) found.push_back(away);
    EXPECT_LE(bucket, static_cast<std::int64_t>(found.size()));
  }
  return found;
}

// The values of T5Attention._relative_position_bucket in transformers.
TEST(RelativePosition, buckets_are_the_published_ones) {
  using Starts = std::vector<std::int64_t>;
  EXPECT_EQ(starts({32, 128, true}), (Starts{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91}));
  EXPECT_EQ(starts({32, 128, false}), (Starts{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                              16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113}));
  EXPECT_EQ(starts({8, 20, false}), (Starts{0, 1, 2, 3, 4, 6, 9, 14}));
}

TEST(RelativePosition, keys_after_the_query_have_the_second_half_or_none) {
  for (std::int64_t away = 1; away < 200; ++away) {
    EXPECT_EQ(bucket_of(away, {32, 128, true}), 16 + bucket_of(-away, {32, 128, true}));
    EXPECT_EQ(bucket_of(away, {32, 128, false}), 0);
  }
}

// A table of all distinct distances serves larger ones through attention's clamp.
TEST(RelativePosition, further_distances_are_in_the_last_bucket) {
  for (const bool both_ways : {true, false}) {
    const RelativePositions positions{8, 20, both_ways};
    const std::vector<std::int64_t> buckets = buckets_by_distance(positions);
    ASSERT_EQ(static_cast<std::int64_t>(buckets.size()), positions.distances());
    for (std::int64_t distance = -100; distance <= (both_ways ? 100 : 0); ++distance) {
      const std::int64_t place = std::clamp<std::int64_t>(distance + positions.origin(), 0, positions.distances() - 1);
      EXPECT_EQ(buckets[static_cast<std::size_t>(place)], bucket_of(distance, positions)) << distance;
    }
  }
}

TEST(RelativePosition, the_bias_is_the_table_at_the_buckets) {
  const RelativePositions positions{8, 20, true};
  Graph graph("bias");
  const Value table = graph.parameter({"table", Type(DType::f32, {8, 3}, {"bucket", "heads"}), {}});
  graph.output("bias", bias_by_distance(table, positions));
  HostTensor values(DType::f32, {8, 3});
  for (std::int64_t i = 0; i < 24; ++i) values.set(i, static_cast<double>(i));
  const HostTensor given[] = {values};
  const HostTensor bias = evaluate(graph, given)[0];
  ASSERT_EQ(bias.shape(), (Shape{3, 41}));
  for (std::int64_t head = 0; head < 3; ++head) {
    for (std::int64_t i = 0; i < 41; ++i)
      EXPECT_EQ(bias.at(head * 41 + i), static_cast<double>(3 * bucket_of(i - 20, positions) + head));
  }
}

}  // namespace
}  // namespace systole
