#include "predict/prove/slice_network.h"

#include <gtest/gtest.h>

namespace systole::prove {
namespace {

constexpr BytesPerSecond kLink(50e9);
constexpr Bytes kValue(8'000'000'000);

SliceNetwork torus(std::vector<SliceNetwork::Axis> axes, std::int64_t devices_per_chip = 1) {
  return {std::move(axes), devices_per_chip, kLink, Seconds(0)};
}

TEST(SliceNetwork, a_gather_along_a_ring_goes_both_ways_round) {
  const SliceNetwork ring = torus({{16, true}, {16, true}});
  EXPECT_DOUBLE_EQ(collective_time(ring, "all_gather", kValue, 16).count(), 8e9 / 100e9 * 15 / 16);
  EXPECT_DOUBLE_EQ(collective_time(ring, "reduce_scatter", kValue, 16).count(), 8e9 / 100e9 * 15 / 16);
  EXPECT_DOUBLE_EQ(collective_time(ring, "all_reduce", kValue, 16).count(), 2 * 8e9 / 100e9 * 15 / 16);
  // Each of the two axes carries half.
  EXPECT_DOUBLE_EQ(collective_time(ring, "all_gather", kValue, 256).count(), 8e9 / 200e9 * 255 / 256);
  EXPECT_EQ(collective_time(ring, "all_gather", kValue, 0), collective_time(ring, "all_gather", kValue, 256));
}

TEST(SliceNetwork, along_a_line_all_of_it_goes_one_way) {
  const SliceNetwork line = torus({{4, false}, {8, false}});
  EXPECT_DOUBLE_EQ(collective_time(line, "all_gather", kValue, 8).count(), 8e9 / 50e9 * 7 / 8);
  EXPECT_DOUBLE_EQ(collective_time(line, "all_gather", kValue, 32).count(), 8e9 / 100e9 * 31 / 32);
  EXPECT_DOUBLE_EQ(collective_time(line, "all_gather", kValue, 2).count(), 8e9 / 50e9 / 2) << "two of an axis";
}

// scaling-book, "Sharded Matrices": an all-to-all on a ring takes a quarter of its all-gather; here `bytes` is one
// device's share.
TEST(SliceNetwork, an_all_to_all_is_what_crosses_the_middle) {
  const SliceNetwork ring = torus({{16, true}});
  const Seconds gather = collective_time(ring, "all_gather", kValue * 16, 16);
  EXPECT_DOUBLE_EQ(collective_time(ring, "all_to_all", kValue, 16).count(), gather.count() * 16 / 15 / 4);
  EXPECT_DOUBLE_EQ(collective_time(torus({{4, false}}), "all_to_all", kValue, 4).count(), 8e9 / 50e9);
}

TEST(SliceNetwork, hops_take_their_time) {
  SliceNetwork ring = torus({{16, true}, {4, false}});
  ring.hop = Seconds(1e-6);
  EXPECT_NEAR(collective_time(ring, "all_gather", Bytes(1), 16).count(), 8e-6, 1e-9);
  EXPECT_NEAR(collective_time(ring, "all_gather", Bytes(1), 4).count(), 3e-6, 1e-9);
  EXPECT_NEAR(collective_time(ring, "all_gather", Bytes(1), 64).count(), 11e-6, 1e-9);
  EXPECT_NEAR(collective_time(ring, "collective_permute", Bytes(50'000), 64).count(), 2e-6, 1e-9);
}

TEST(SliceNetwork, devices_of_a_chip) {
  const SliceNetwork pairs = torus({{4, true}, {4, true}, {4, true}}, 2);
  EXPECT_DOUBLE_EQ(collective_time(pairs, "all_gather", kValue, 128).count(), 8e9 / 300e9 * 127 / 128);
  EXPECT_DOUBLE_EQ(collective_time(pairs, "all_gather", kValue, 2).count(), 8e9 / 300e9);
}

TEST(SliceNetwork, nobody_to_speak_to) {
  EXPECT_EQ(collective_time(torus({{2, false}}), "all_gather", kValue, 1), Seconds(0));
  EXPECT_EQ(collective_time(torus({{1, false}, {1, false}}), "all_reduce", kValue, 0), Seconds(0));
  EXPECT_EQ(collective_time(torus({{2, false}}), "all_gather", Bytes(0), 2), Seconds(0));
}

}  // namespace
}  // namespace systole::prove
