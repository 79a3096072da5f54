// Dim names through ops that move elements, and functions of ops.h that combine ops.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

class Names : public ::testing::Test {
 protected:
  Graph graph{"names"};
  Value x = graph.input("x", Type(DType::f32, {3, 4, 5}, {"batch", "seq", "embed"}));
};

TEST_F(Names, Transpose) {
  EXPECT_EQ(to_string(transpose(x, std::array{2, 0, 1}).type()), "f32[embed=5, batch=3, seq=4]");
}
TEST_F(Names, Slice) { EXPECT_EQ(to_string(slice_dim(x, 1, 1, 3).type()), "f32[batch=3, seq=2, embed=5]"); }
TEST_F(Names, Pad) { EXPECT_EQ(to_string(pad(x, {0, 1, 0}, {0, 2, 0}, 0).type()), "f32[batch=3, seq=7, embed=5]"); }
TEST_F(Names, Concatenate) {
  EXPECT_EQ(to_string(concatenate(std::array{x, x}, 2).type()), "f32[batch=3, seq=4, embed=10]");
}
TEST_F(Names, Reduce) { EXPECT_EQ(to_string(reduce_sum(x, std::array{1}).type()), "f32[batch=3, embed=5]"); }

TEST_F(Names, Reshape) {
  const Value y = reshape(x, Type(DType::f32, {12, 5}, {"", "embed"}));
  EXPECT_EQ(to_string(y.type()), "f32[12, embed=5]");
  EXPECT_EQ(to_string(graph.nodes().back().attrs), "{names=\",embed\", shape=[12, 5]}");
}

TEST_F(Names, Broadcast) {
  const Value row = graph.input("row", Type(DType::f32, {5}, {"embed"}));
  EXPECT_EQ(to_string(broadcast_last(row, x.type()).type()), to_string(x.type()));
}

TEST_F(Names, TakeRow) {
  const Value index = graph.input("index", Type(DType::i32, {3}));
  EXPECT_EQ(to_string(take_row(x, index).type()), "f32[batch=3, embed=5]");
}

TEST_F(Names, ConvertingByShapeIsRefused) {
  EXPECT_THROW(reshape(x, Type(DType::bf16, {60})), Failure);
  EXPECT_THROW(broadcast(x, Type(DType::bf16, {3, 4, 5}), std::array{0, 1, 2}), Failure);
}

TEST_F(Names, NamesThatDoNotFit) {
  Attrs attrs{{"shape", Ints{12, 5}}, {"names", std::string("embed")}};
  EXPECT_THROW(graph.apply("reshape", std::array{x}, attrs), Failure);
}

TEST(CacheWrite, DropsWhatIsBeyond) {
  Graph graph("g");
  const Value cache = graph.input("cache", Type(DType::f32, {2, 3, 1})),
              rows = graph.input("rows", Type(DType::f32, {2, 2, 1}));
  graph.output("y", cache_write(cache, rows, graph.input("position", Type(DType::i32, {2}))));
  const double row_values[] = {1, 2, 3, 4}, positions[] = {0, 2};
  const HostTensor y =
      evaluate(graph, std::array{HostTensor(DType::f32, {2, 3, 1}), HostTensor(DType::f32, {2, 2, 1}, row_values),
                                 HostTensor(DType::i32, {2}, positions)})[0];
  EXPECT_EQ(y.values(), (std::vector<double>{1, 2, 0, 0, 0, 3}));
}

TEST(Builders, GlobalNorm) {
  Graph graph("g");
  const Value a = graph.input("a", Type(DType::f32, {2})), b = graph.input("b", Type(DType::bf16, {1}));
  graph.output("norm", global_norm(std::array{a, b}));
  const double av[] = {1, 2}, bv[] = {2};
  const HostTensor norm =
      evaluate(graph, std::array{HostTensor(DType::f32, {2}, av), HostTensor(DType::bf16, {1}, bv)})[0];
  EXPECT_EQ(norm.dtype(), DType::f32);
  EXPECT_EQ(norm.at(0), 3);
  EXPECT_THROW(global_norm({}), Failure);
}

TEST(Builders, SumAllIsWide) {
  Graph graph("g");
  const Value x = graph.input("x", Type(DType::bf16, {300})), n = graph.input("n", Type(DType::i32, {3}));
  EXPECT_EQ(sum_all(x).type(), Type(DType::f32, {}));
  EXPECT_EQ(sum_all(n).type(), Type(DType::f32, {}));
  EXPECT_EQ(sum_of_squares(graph.input("d", Type(DType::f64, {3}))).type(), Type(DType::f64, {}));
}

TEST(Reduce, NanShows) {
  Graph graph("g");
  const Value x = graph.input("x", Type(DType::f32, {3}));
  graph.output("max", reduce_max(x, std::array{0}));
  graph.output("min", reduce_min(x, std::array{0}));
  const double values[] = {1, std::nan(""), 2};
  const std::vector<HostTensor> y = evaluate(graph, std::array{HostTensor(DType::f32, {3}, values)});
  EXPECT_TRUE(std::isnan(y[0].at(0)));
  EXPECT_TRUE(std::isnan(y[1].at(0)));
}

TEST(Constant, ReadsBackFromItsAttributes) {
  Graph graph("g");
  const Value c = constant(graph, Type(DType::i32, {2, 3}, {"batch", ""}), -1);
  EXPECT_EQ(to_string(graph.nodes().back().attrs), "{dtype=\"i32\", names=\"batch,\", shape=[2, 3], value=-1.0}");
  EXPECT_EQ(to_string(c.type()), "i32[batch=2, 3]");
  EXPECT_EQ(to_string(iota(graph, Type(DType::i32, {4}), 0).type()), "i32[4]");
}

}  // namespace
}  // namespace systole
