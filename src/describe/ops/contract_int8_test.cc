#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"
#include "ground/tensor/int8.h"

namespace systole {
namespace {

HostTensor product(const HostTensor& x, const HostTensor& w, const HostTensor& scale) {
  Graph graph("g");
  const Value operands[] = {graph.input("x", Type(x.dtype(), x.shape())), graph.input("w", Type(w.dtype(), w.shape())),
                            graph.input("scale", Type(scale.dtype(), scale.shape()))};
  graph.output("y", contract_int8(operands[0], operands[1], operands[2]));
  return evaluate(graph, std::array{x, w, scale})[0];
}

TEST(ContractInt8, ByHand) {
  const double xv[] = {127, -63.5, 0, 2, 0, -4}, wv[] = {1, 2, 3, -1, 0, 1}, sv[] = {0.5, 2};
  const HostTensor y =
      product(HostTensor(DType::f32, {2, 3}, xv), HostTensor(DType::i8, {2, 3}, wv), HostTensor(DType::f32, {2}, sv));
  // Row 0 is quantised to 127, -64 (the nearest even of -63.5), 0, with scale 1; row 1 to 64 (of 63.5), 0, -127.
  const float s = 4.0F / 127.0F;
  EXPECT_EQ(y.values(), (std::vector<double>{(127 - 128) * 0.5, -127 * 2.0, double{s * 0.5F * (64 - 381)},
                                             double{s * 2.0F * (-64 - 127)}}));
}

TEST(ContractInt8, ARowDoesNotDependOnItsCompany) {
  HostTensor x(DType::f32, {5, 40}), w(DType::i8, {7, 40}), scale(DType::f32, {7});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.set(i, std::sin(static_cast<double>(i * i)) * static_cast<double>(i + 1));
  for (std::int64_t i = 0; i < w.size(); ++i) w.set(i, static_cast<double>(i * 37 % 255 - 127));
  for (std::int64_t i = 0; i < 7; ++i) scale.set(i, 0.01 * static_cast<double>(i + 1));
  const HostTensor together = product(x, w, scale);
  for (std::int64_t r = 0; r < 5; ++r) {
    HostTensor row(DType::f32, {1, 40});
    for (std::int64_t i = 0; i < 40; ++i) row.set(i, x.at(r * 40 + i));
    const HostTensor alone = product(row, w, scale);
    for (std::int64_t j = 0; j < 7; ++j) EXPECT_EQ(alone.at(j), together.at(r * 7 + j)) << r << " " << j;
  }
}

TEST(ContractInt8, ARowThatIsNotFiniteGivesNaNAndLeavesOthers) {
  const double xv[] = {1, INFINITY, 1, 1, NAN, 1}, wv[] = {1, 0, 0, 127}, sv[] = {1, 1};
  const HostTensor y =
      product(HostTensor(DType::f32, {3, 2}, xv), HostTensor(DType::i8, {2, 2}, wv), HostTensor(DType::f32, {2}, sv));
  for (const int i : {0, 1, 4, 5}) EXPECT_TRUE(std::isnan(y.at(i))) << i;
  EXPECT_EQ(y.at(2), double{1.0F / 127.0F * 127.0F});
}

// The rows of x are quantised as quantize_row does it: products with unit vectors show them.
TEST(ContractInt8, RowsAreQuantisedAsWeightsAre) {
  const std::vector<double> xv{0.3, -1.7, 2.5e-3, 1.7, 0.85, -0.0201, 1e-9};
  const auto k = static_cast<std::int64_t>(xv.size());
  HostTensor w(DType::i8, {k, k}), ones(DType::f32, {k});
  for (std::int64_t i = 0; i < k; ++i) {
    w.set(i * k + i, 1);
    ones.set(i, 1);
  }
  const HostTensor x(DType::f32, {1, k}, xv), y = product(x, w, ones);
  std::vector<std::int8_t> q(xv.size());
  const float scale = quantize_row(x.as<float>(), q);
  for (std::int64_t i = 0; i < k; ++i)
    EXPECT_EQ(static_cast<float>(y.at(i)), scale * static_cast<float>(q[static_cast<std::size_t>(i)])) << i;
}

TEST(EmbeddingInt8, IsTheRowTimesItsScale) {
  Graph graph("g");
  const Value table = graph.input("t", Type(DType::i8, {2, 3})), scale = graph.input("s", Type(DType::f32, {2})),
              ids = graph.input("i", Type(DType::i32, {3}));
  graph.output("y", embedding_int8(table, scale, ids));
  const double tv[] = {1, -2, 3, 127, 0, -127}, sv[] = {0.5, 0.25}, iv[] = {1, 2, 0};
  const HostTensor y = evaluate(graph, std::array{HostTensor(DType::i8, {2, 3}, tv), HostTensor(DType::f32, {2}, sv),
                                                  HostTensor(DType::i32, {3}, iv)})[0];
  EXPECT_EQ(y.values(), (std::vector<double>{31.75, 0, -31.75, 0, 0, 0, 0.5, -1, 1.5}));
}

}  // namespace
}  // namespace systole
