#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"
#include "describe/ops/random_bits.h"

namespace systole {
namespace {

HostTensor dropped(const Shape& shape, double rate, std::array<double, 4> key) {  // of ones; key: seed, step, site, row
  Graph graph("dropout");
  const Type i64(DType::i64, {});
  const Value x = graph.input("x", Type(DType::f32, shape));
  graph.output("y", dropout(x,
                            {graph.input("seed", i64), graph.input("step", i64), graph.input("site", i64),
                             graph.input("row", i64)},
                            rate));
  HostTensor ones(DType::f32, shape);
  for (std::int64_t i = 0; i < ones.size(); ++i) ones.set(i, 1);
  std::vector<HostTensor> inputs = {ones};
  for (const double value : key) inputs.emplace_back(DType::i64, Shape{}, std::span(&value, 1));
  return evaluate(graph, inputs)[0];
}

// An independent implementation of the contract in random_bits.h.
TEST(Dropout, BitsBelongToThePlace) {
  const HostTensor y = dropped({3, 5}, 0.5, {11, 22, 33, 7});
  for (std::uint64_t i = 0; i < 15; ++i) {
    const std::uint64_t place = 7 * 5 + i;
    const PhiloxBlock block = philox(11, {static_cast<std::uint32_t>(place / 4), 0, 33, 22});
    const double u = static_cast<double>(block[place % 4] >> 8) / 16777216.0;
    EXPECT_EQ(y.at(static_cast<std::int64_t>(i)), u >= 0.5 ? 2 : 0) << i;
  }
}

TEST(Dropout, RowsCutOffKeepTheirBits) {
  const HostTensor all = dropped({10, 3}, 0.4, {1, 2, 3, 100}), tail = dropped({6, 3}, 0.4, {1, 2, 3, 104});
  for (std::int64_t i = 0; i < tail.size(); ++i) EXPECT_EQ(tail.at(i), all.at(12 + i));
}

TEST(Dropout, SeedStepAndSiteMatter) {
  const HostTensor base = dropped({16, 16}, 0.5, {1, 2, 3, 0});
  EXPECT_FALSE(base == dropped({16, 16}, 0.5, {2, 2, 3, 0}));
  EXPECT_FALSE(base == dropped({16, 16}, 0.5, {1, 3, 3, 0}));
  EXPECT_FALSE(base == dropped({16, 16}, 0.5, {1, 2, 4, 0}));
  EXPECT_TRUE(base == dropped({16, 16}, 0.5, {1, 2, 3, 0}));
}

TEST(Dropout, DropsTheRateAndKeepsTheMean) {
  const HostTensor y = dropped({200, 100}, 0.25, {5, 1, 1, 0});
  double sum = 0, zeros = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    sum += y.at(i);
    zeros += y.at(i) == 0;
  }
  const double n = 20000, deviation = std::sqrt(0.25 * 0.75 / n);
  EXPECT_NEAR(zeros / n, 0.25, 5 * deviation);
  EXPECT_NEAR(sum / n, 1, 5 * deviation / 0.75);
}

TEST(Dropout, ScalarHasPlaceZero) { EXPECT_TRUE(dropped({}, 0.5, {9, 8, 7, 0}) == dropped({}, 0.5, {9, 8, 7, 41})); }

TEST(Dropout, NegativeRowIsRefused) { EXPECT_THROW(dropped({3}, 0.5, {1, 1, 1, -1}), Failure); }

}  // namespace
}  // namespace systole
