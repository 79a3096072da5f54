#include "ground/mesh/collective_cost.h"

#include <gtest/gtest.h>

#include <array>

namespace systole {
namespace {

using enum CollectiveKind;
using Algorithm = CollectiveAlgorithm;

const LinkCost kLink{Seconds(8e-6), BytesPerSecond(1e9)};

// The closed form equals the cost of the list if chunks are equal.
TEST(CollectiveCost, the_closed_form_is_the_sum_over_the_transfers) {
  int compared = 0;
  for (const CollectiveKind kind :
       {all_reduce, reduce_scatter, all_gather, all_to_all, collective_permute, broadcast}) {
    for (const Algorithm algorithm : algorithms_of(kind)) {
      for (const std::vector<std::int64_t>& axes : std::vector<std::vector<std::int64_t>>{
               {1}, {2}, {3}, {4}, {5}, {8}, {2, 2}, {2, 3}, {4, 2}, {3, 1}, {1, 4}, {2, 2, 3}}) {
        const std::int64_t n = Collective{kind, axes, Bytes(0)}.num_ranks();
        const bool power = (n & (n - 1)) == 0;
        if (algorithm == Algorithm::recursive_halving_doubling && !power) continue;
        for (const std::int64_t chunk : {1, 1000}) {
          const Collective c{kind, axes, Bytes(n * chunk), Bytes(1)};
          const Seconds want = cost_of(transfers_of(c, algorithm).value(), kLink);
          EXPECT_NEAR(cost_of(c, algorithm, std::array{kLink}).count(), want.count(), 1e-12)
              << name_of(kind) << " " << name_of(algorithm) << " n " << n << " chunk " << chunk;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 250);
}

// By hand: 8 ranks, 8 µs and 1 GB/s.
TEST(CollectiveCost, by_hand) {
  const Collective c{all_reduce, {8}, Bytes(8000), Bytes(4)};
  const auto micros = [&](Algorithm a) { return cost_of(c, a, std::array{kLink}).count() * 1e6; };
  EXPECT_NEAR(micros(Algorithm::ring), 14 * (8 + 1), 1e-9);
  EXPECT_NEAR(micros(Algorithm::direct), 2 * (8 * (1 + 6.0 / 8) + 7), 1e-9);
  EXPECT_NEAR(micros(Algorithm::recursive_halving_doubling), 6 * 8 + 2 * 7, 1e-9);
  EXPECT_EQ(cost_of(Collective{all_reduce, {1}, Bytes(8000)}, Algorithm::ring, std::array{kLink}), Seconds(0));
}

TEST(CollectiveCost, the_choice) {
  const auto chosen = [](CollectiveKind kind, std::vector<std::int64_t> axes, Bytes bytes, DType dtype = DType::f32) {
    return choose_algorithm({kind, std::move(axes), bytes, Bytes(size_of(dtype))}, dtype, kLink.latency,
                            kLink.bandwidth);
  };
  EXPECT_EQ(chosen(all_reduce, {2}, kKiB), Algorithm::direct);
  EXPECT_EQ(chosen(all_reduce, {8}, 256 * kMiB), Algorithm::direct);
  EXPECT_EQ(chosen(all_reduce, {64}, kKiB), Algorithm::recursive_halving_doubling);
  EXPECT_EQ(chosen(all_reduce, {16384}, kGiB), Algorithm::recursive_halving_doubling);
  EXPECT_EQ(chosen(all_gather, {100}, kMiB), Algorithm::ring);  // too many ranks for direct
  EXPECT_EQ(chosen(all_gather, {64, 64}, kMiB), Algorithm::hierarchical);
  EXPECT_EQ(chosen(broadcast, {32}, kMiB), Algorithm::binomial_tree);
  EXPECT_EQ(chosen(all_to_all, {1000}, 1000 * kKiB), Algorithm::direct);  // the only algorithm
  // Sums are rounded once, hence direct for any number of ranks.
  EXPECT_EQ(chosen(all_reduce, {1024}, kMiB, DType::bf16), Algorithm::direct);
  EXPECT_EQ(chosen(reduce_scatter, {1024}, kMiB, DType::f16), Algorithm::direct);
  EXPECT_EQ(chosen(all_gather, {100}, kMiB, DType::bf16), Algorithm::ring);
}

// With a slow outer axis, hierarchical is the cheapest.
TEST(CollectiveCost, the_slow_axis_is_spared) {
  const Collective c{all_reduce, {4, 8}, 64 * kMiB, Bytes(4)};
  const std::array links{LinkCost{Seconds(20e-6), BytesPerSecond(1e9)}, LinkCost{Seconds(2e-6), BytesPerSecond(1e11)}};
  EXPECT_EQ(choose_algorithm(c, DType::f32, links), Algorithm::hierarchical);
  EXPECT_LT(cost_of(c, Algorithm::hierarchical, links).count(),
            cost_of(c, Algorithm::direct, links).count() / 5);  // 7/8 of the bytes stay on the inner axis
  const std::array swapped{links[1], links[0]};
  EXPECT_GT(cost_of(c, Algorithm::hierarchical, swapped), cost_of(c, Algorithm::hierarchical, links));
}

TEST(CollectiveCost, more_bytes_and_slower_links_cost_more) {
  for (const CollectiveKind kind :
       {all_reduce, reduce_scatter, all_gather, all_to_all, collective_permute, broadcast}) {
    for (const Algorithm a : algorithms_of(kind)) {
      const auto cost = [&](Bytes bytes, double latency, double bandwidth) {
        return cost_of(Collective{kind, {2, 4}, bytes}, a,
                       std::array{LinkCost{Seconds(latency), BytesPerSecond(bandwidth)}});
      };
      EXPECT_LT(cost(kKiB, 1e-6, 1e9), cost(2 * kKiB, 1e-6, 1e9));
      EXPECT_LT(cost(kKiB, 1e-6, 1e9), cost(kKiB, 2e-6, 1e9));
      EXPECT_LT(cost(kKiB, 1e-6, 1e9), cost(kKiB, 1e-6, 5e8));
    }
  }
}

}  // namespace
}  // namespace systole
