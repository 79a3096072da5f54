// Edges against all choices of edges, against powers of two, and the claims that are made about buckets.

#include "describe/lengths/bucket_edges.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "ground/base/philox.h"

namespace systole {
namespace {

std::int64_t positions(std::span<const Bucket> buckets) {
  std::int64_t sum = 0;
  for (const Bucket& bucket : buckets) sum += bucket.positions();
  return sum;
}

LengthHistogram drawn(std::uint64_t seed, std::int64_t longest, int different) {
  PhiloxStream random(seed);
  LengthHistogram rows;
  for (int i = 0; i < different; ++i)
    rows.add(1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(longest))),
             1 + static_cast<std::int64_t>(random.below(50)));
  return rows;
}

double cost_of(const LengthHistogram& rows, const std::vector<std::int64_t>& edges,
               const std::function<double(std::int64_t)>& cost) {
  double sum = 0;
  for (const Bucket& bucket : buckets_of(rows, edges)) sum += static_cast<double>(bucket.rows) * cost(bucket.edge);
  return sum;
}

// Of every set of at most `shapes` edges up to `longest`, the least cost.
double least_cost(const LengthHistogram& rows, int shapes, std::int64_t align, std::int64_t longest,
                  const std::function<double(std::int64_t)>& cost) {
  std::vector<std::int64_t> all;
  for (std::int64_t edge = align; edge < longest; edge += align) all.push_back(edge);
  all.push_back(longest);
  double least = INFINITY;
  for (std::uint32_t chosen = 1; chosen < 1u << all.size(); ++chosen) {
    if (std::popcount(chosen) > shapes) continue;
    std::vector<std::int64_t> edges;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (chosen >> i & 1) edges.push_back(all[i]);
    if (edges.back() >= rows.longest()) least = std::min(least, cost_of(rows, edges, cost));
  }
  return least;
}

TEST(BucketEdges, are_the_best_of_all) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::int64_t align = seed % 3 == 2 ? 4 : 1, longest = 12 + static_cast<std::int64_t>(seed % 2);
    const LengthHistogram rows = drawn(seed, longest, 3 + static_cast<int>(seed % 9));
    for (const bool squared : {false, true}) {
      const auto cost = [squared](std::int64_t edge) {
        return static_cast<double>(squared ? 100 * edge + edge * edge : edge);
      };
      for (int shapes = 1; shapes <= 5; ++shapes) {
        const auto edges = best_edges(rows, {.shapes = shapes, .align = align, .longest = longest, .cost = cost});
        EXPECT_LE(edges.size(), static_cast<std::size_t>(shapes));
        for (const std::int64_t edge : edges) EXPECT_TRUE(edge % align == 0 || edge == longest) << edge;
        EXPECT_EQ(cost_of(rows, edges, cost), least_cost(rows, shapes, align, longest, cost))
            << "seed " << seed << ", " << shapes << " shapes";
      }
    }
  }
}

TEST(BucketEdges, as_few_as_keep_the_waste) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const LengthHistogram rows = drawn(seed, 400, 100);
    const double waste = 0.02 + 0.01 * static_cast<double>(seed % 20);
    const auto edges = best_edges(rows, {.shapes = 100, .waste = waste});
    EXPECT_LE(padding_share(buckets_of(rows, edges)), waste) << "seed " << seed;
    if (edges.size() == 1) continue;
    const auto fewer = best_edges(rows, {.shapes = static_cast<std::int64_t>(edges.size()) - 1});
    EXPECT_GT(padding_share(buckets_of(rows, fewer)), waste) << "seed " << seed;
  }
}

TEST(BucketEdges, never_waste_more_than_powers_of_two) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::int64_t align = std::int64_t{1} << seed % 6, longest = 2048;
    const LengthHistogram rows = drawn(seed, 1 + static_cast<std::int64_t>(seed * 50), 200);
    const auto powers = power_of_two_edges(rows, align, longest);
    const auto best =
        best_edges(rows, {.shapes = static_cast<std::int64_t>(powers.size()), .align = align, .longest = longest});
    EXPECT_LE(positions(buckets_of(rows, best)), positions(buckets_of(rows, powers))) << "seed " << seed;
  }
}

// Lengths of a log-normal law, as those of texts are.
LengthHistogram log_normal(double median, double spread, std::int64_t longest) {
  LengthHistogram rows;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const PhiloxBlock bits = philox(7, philox_counter(i));
    for (const double normal : {normal_pair(bits[0], bits[1]).first, normal_pair(bits[0], bits[1]).second})
      rows.add(std::clamp<std::int64_t>(std::llround(median * std::exp(spread * normal)), 1, longest));
  }
  return rows;
}

TEST(BucketEdges, claims_about_buckets) {
  LengthHistogram twenty;
  twenty.add(20, 1000);
  EXPECT_NEAR(padding_share(buckets_of(twenty, std::vector<std::int64_t>{128})), 0.84375, 1e-12);

  // Most rows near the edges: three buckets hold 95%, and less than 5% is padding.
  LengthHistogram rows;
  rows.add(125, 600);
  rows.add(250, 250);
  rows.add(500, 110);
  rows.add(1000, 30);
  rows.add(2000, 10);
  const auto buckets = buckets_of(rows, std::vector<std::int64_t>{128, 256, 512, 1024, 2048});
  EXPECT_EQ(buckets_holding(buckets, 0.95), 3);
  EXPECT_LT(padding_share(buckets), 0.05);
  EXPECT_EQ(buckets_holding(buckets, 1), 5);

  const LengthHistogram texts = log_normal(120, 0.8, 2048);
  const auto edges = best_edges(texts, {.shapes = 32, .waste = 0.1, .align = 8, .longest = 2048});
  EXPECT_LE(padding_share(buckets_of(texts, edges)), 0.1);
  EXPECT_LE(edges.size(), 18u);
  EXPECT_GT(padding_share(buckets_of(texts, power_of_two_edges(texts, 8, 2048))), 0.2);
}

TEST(BucketEdges, of_long_contexts_are_found_at_once) {
  LengthHistogram rows;
  for (std::int64_t length = 1; length <= 131'072; ++length) rows.add(length, 1 + 131'072 / length);
  const auto edges = best_edges(rows, {.shapes = 16});
  EXPECT_EQ(edges.size(), 16u);
  EXPECT_EQ(edges.back(), 131'072);
}

TEST(BucketEdges, of_nothing_and_of_one_length) {
  EXPECT_TRUE(best_edges({}, {.shapes = 3}).empty());
  EXPECT_EQ(padding_share(std::vector<Bucket>{}), 0);
  LengthHistogram one;
  one.add(100, 5);
  EXPECT_EQ(best_edges(one, {.shapes = 3, .align = 128}), (std::vector<std::int64_t>{128}));
  EXPECT_EQ(best_edges(one, {.shapes = 3, .align = 128, .longest = 100}), (std::vector<std::int64_t>{100}));
}

}  // namespace
}  // namespace systole
