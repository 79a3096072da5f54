#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"
#include "describe/ops/random_bits.h"

namespace systole {
namespace {

HostTensor number(std::int64_t value) {
  HostTensor tensor(DType::i64, {});
  tensor.as<std::int64_t>()[0] = value;
  return tensor;
}

HostTensor rounded_stochastically(const HostTensor& x, std::int64_t seed, std::int64_t step = 0, std::int64_t site = 0,
                                  std::int64_t row = 0) {
  Graph graph("round");
  const Type i64(DType::i64, {});
  const Value in = graph.input("x", Type(x.dtype(), x.shape()));
  const RandomKey key{graph.input("seed", i64), graph.input("step", i64), graph.input("site", i64),
                      graph.input("row", i64)};
  graph.output("y", stochastic_round(in, key));
  return evaluate(graph, std::array{x, number(seed), number(step), number(site), number(row)})[0];
}

TEST(Cast, ToTheSameTypeIsNoNode) {
  Graph graph("g");
  const Value x = graph.input("x", Type(DType::f32, {3}));
  EXPECT_EQ(cast(x, DType::f32).id, x.id);
  EXPECT_TRUE(graph.nodes().empty());
  EXPECT_EQ(cast(x, DType::bf16).type(), Type(DType::bf16, {3}));
}

TEST(Cast, LargeIntegersStayExact) {
  Graph graph("g");
  graph.output("y", cast(graph.input("x", Type(DType::i64, {2})), DType::u64));
  HostTensor x(DType::i64, {2});
  x.as<std::int64_t>()[0] = (std::int64_t{1} << 60) + 1;
  x.as<std::int64_t>()[1] = -5;  // saturates
  const HostTensor y = evaluate(graph, std::array{x})[0];
  EXPECT_EQ(y.as<std::uint64_t>()[0], (std::uint64_t{1} << 60) + 1);
  EXPECT_EQ(y.as<std::uint64_t>()[1], 0u);
}

// For an f32 the rule is: add the upper half of the random word to the bits and truncate.
TEST(StochasticRound, OfF32IsAnAdditionOfBits) {
  HostTensor x(DType::f32, {64});
  const float samples[] = {1.0f, 1.00001f, -3.14159f, 1e-40f, -1e-38f, 65504.3f, 3.3e38f, 0.0f};
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.as<float>()[static_cast<std::size_t>(i)] = samples[i % 8] * (i < 56 ? 1 + 1e-3f * static_cast<float>(i) : 1);
  const HostTensor y = rounded_stochastically(x, 99, 4, 2, 1000);
  const ops::PlaceBits bits{99, 4, 2};
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t word;
    std::memcpy(&word, &x.as<float>()[i], 4);
    const std::uint16_t want = static_cast<std::uint16_t>((word + (bits.word(1000 + i) >> 16)) >> 16);
    EXPECT_EQ(y.as<std::uint16_t>()[i], want) << x.at(static_cast<std::int64_t>(i));
  }
}

TEST(StochasticRound, IsExactInTheMean) {
  const std::int64_t n = 20000;
  HostTensor x(DType::f32, {n});
  const double value = 1 + 0.3 * 0x1p-7;  // 0.3 of the way from 1 to the next bf16
  for (std::int64_t i = 0; i < n; ++i) x.set(i, value);
  const HostTensor y = rounded_stochastically(x, 7);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    EXPECT_TRUE(y.at(i) == 1 || y.at(i) == 1 + 0x1p-7);
    sum += y.at(i);
  }
  const double deviation = 0x1p-7 * std::sqrt(0.3 * 0.7 / static_cast<double>(n));
  EXPECT_NEAR(sum / static_cast<double>(n), value, 5 * deviation);
}

TEST(StochasticRound, KeepsBf16InfinityAndNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const double values[] = {0, -0.0, 1.5, -96, inf, -inf, std::nan(""), rounded(DType::bf16, 1e-40), 0x1.fep127};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const HostTensor x(dtype, {9}, values);
    for (std::int64_t seed = 0; seed < 8; ++seed) {
      const HostTensor y = rounded_stochastically(x, seed);
      for (std::int64_t i = 0; i < 9; ++i) EXPECT_TRUE(y.at(i) == values[i] || std::isnan(values[i])) << values[i];
      EXPECT_TRUE(std::isnan(y.at(6)));
      EXPECT_TRUE(std::signbit(y.at(1)));
    }
  }
}

TEST(StochasticRound, OfF64FindsTheNeighbours) {
  const double values[] = {std::nextafter(1.0, 2.0), std::nextafter(1.0, 0.0), 1e-45, 1e39, -1e39};
  const HostTensor y = rounded_stochastically(HostTensor(DType::f64, {5}, values), 3);
  EXPECT_TRUE(y.at(0) == 1 || y.at(0) == 1 + 0x1p-7);
  EXPECT_TRUE(y.at(1) == 1 || y.at(1) == 1 - 0x1p-8);
  EXPECT_TRUE(y.at(2) == 0 || y.at(2) == 0x1p-133);
  EXPECT_EQ(y.at(3), std::numeric_limits<double>::infinity());
  EXPECT_EQ(y.at(4), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace systole
