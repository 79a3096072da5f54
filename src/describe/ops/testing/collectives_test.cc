// Collectives over several devices, on a fake 2×3 mesh, and their gradients against finite differences of a loss that
// is summed over all ranks.

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"
#include "describe/ops/testing/fake_mesh.h"
#include "describe/ops/testing/list.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

const FakeMesh kMesh{{"data", "model"}, {2, 3}};

HostTensor numbers(Shape shape, double first) {
  HostTensor tensor(DType::f64, std::move(shape));
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, first + static_cast<double>(i));
  return tensor;
}

// Rank r holds `shape` with the values 100 r, 100 r + 1, ….
PerRank distinct(const Shape& shape) {
  PerRank inputs;
  for (std::int64_t rank = 0; rank < kMesh.num_ranks(); ++rank)
    inputs.push_back({numbers(shape, 100.0 * static_cast<double>(rank))});
  return inputs;
}

template <typename Build>
PerRank run(const Shape& shape, Build build) {
  Graph graph("collective");
  graph.output("y", build(graph.input("x", Type(DType::f64, shape))));
  return evaluate_on(kMesh, graph, distinct(shape));
}

TEST(Collectives, RanksOfTheMesh) {
  EXPECT_EQ(kMesh.coordinate(5, 0), 1);
  EXPECT_EQ(kMesh.coordinate(5, 1), 2);
  EXPECT_EQ(kMesh.moved(5, 0, 0), 2);
  EXPECT_EQ(kMesh.moved(5, 1, 0), 3);
}

TEST(Collectives, AllReduceAddsAlongItsAxis) {
  const PerRank y = run({2}, [](Value x) { return all_reduce(x, "data", 2); });
  EXPECT_EQ(y[1][0].values(), (std::vector<double>{100 + 400, 101 + 401}));  // ranks 1 and 4
  EXPECT_EQ(y[4][0], y[1][0]);
  const PerRank m = run({2}, [](Value x) { return all_reduce(x, "model", 3, "max"); });
  EXPECT_EQ(m[3][0].values(), (std::vector<double>{500, 501}));
}

TEST(Collectives, AllGatherJoinsInOrderOfTheAxis) {
  const PerRank y = run({2, 1}, [](Value x) { return all_gather(x, "model", 3, 1); });
  EXPECT_EQ(y[4][0].shape(), (Shape{2, 3}));
  EXPECT_EQ(y[4][0].values(), (std::vector<double>{300, 400, 500, 301, 401, 501}));
}

TEST(Collectives, ReduceScatterIsAllReduceAndOwnPart) {
  const PerRank y = run({6}, [](Value x) { return reduce_scatter(x, "model", 3, 0); });
  EXPECT_EQ(y[1][0].values(), (std::vector<double>{0 + 100 + 200 + 6, 0 + 100 + 200 + 9}));
  EXPECT_EQ(y[5][0].values(), (std::vector<double>{300 + 400 + 500 + 12, 300 + 400 + 500 + 15}));
}

TEST(Collectives, AllToAllTurnsOneCutIntoAnother) {
  const PerRank y = run({2, 3}, [](Value x) { return all_to_all(x, "data", 2, 0, 1); });
  EXPECT_EQ(y[0][0].values(), (std::vector<double>{0, 1, 2, 300, 301, 302}));
  EXPECT_EQ(y[3][0].values(), (std::vector<double>{3, 4, 5, 303, 304, 305}));
  const PerRank back = run({2, 3}, [](Value x) { return all_to_all(all_to_all(x, "data", 2, 0, 1), "data", 2, 1, 0); });
  for (std::size_t rank = 0; rank < back.size(); ++rank) EXPECT_EQ(back[rank][0], distinct({2, 3})[rank][0]);
}

TEST(Collectives, PermuteGoesRoundItsAxis) {
  const auto from = [](std::string_view axis, std::int64_t parts, std::int64_t by, std::size_t rank) {
    return run({1}, [&](Value x) { return collective_permute(x, axis, parts, by); })[rank][0].values()[0] / 100;
  };
  EXPECT_EQ(from("model", 3, 1, 3), 5);  // the preceding place of its row, cyclically
  EXPECT_EQ(from("model", 3, 1, 4), 3);
  EXPECT_EQ(from("model", 3, -1, 4), 5);
  EXPECT_EQ(from("model", 3, 5, 4), 5);
  EXPECT_EQ(from("data", 2, 1, 4), 1);
  EXPECT_EQ(from("data", 2, 2, 4), 4);
}

TEST(Collectives, RefuseOneDeviceAndAWrongAxis) {
  Graph graph("g");
  graph.output("y", all_reduce(graph.input("x", Type(DType::f64, {2})), "data", 2));
  const HostTensor x = numbers({2}, 1);
  try {
    evaluate(graph, std::array{x});
    FAIL() << "one device ran a collective of two";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::unsupported);
    EXPECT_NE(failure.error().message.find("all_reduce"), std::string::npos);
  }
  EXPECT_THROW(run({2}, [](Value v) { return all_reduce(v, "data", 3); }), Failure);
  EXPECT_THROW(run({2}, [](Value v) { return all_reduce(v, "pipeline", 2); }), Failure);
}

// y = c(x). The loss Σ over ranks of <w_rank, y_rank> is linear in x, so its slope along any direction is exact.
struct CollectiveGradient final : GradientCall {
  Attrs call_attrs;
  Type in, out;
  Graph built{"gradient"};
  Value g;
  CollectiveGradient(const GraphNode& node, Type x, Type y)
      : call_attrs(node.attrs), in(std::move(x)), out(y), g(built.input("g", y)) {
    built.output("dx", *node.op->gradient(*this)[0]);
  }
  const Attrs& attrs() const override { return call_attrs; }
  int num_operands() const override { return 1; }
  const Type& operand_type(int) const override { return in; }
  const Type& result_type(int) const override { return out; }
  Value operand(int) override { fail(error(ErrorKind::internal, "a collective needs no residual")); }
  Value result(int) override { fail(error(ErrorKind::internal, "a collective needs no residual")); }
  std::optional<Value> cotangent(int) const override { return g; }
  bool needs(int) const override { return true; }
  Graph& graph() override { return built; }
};

PerRank random_ranks(const Shape& shape, std::uint64_t seed) {
  PerRank tensors;
  PhiloxStream random(seed);
  for (std::int64_t rank = 0; rank < kMesh.num_ranks(); ++rank) {
    HostTensor tensor(DType::f64, shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 2 * random.uniform() - 1);
    tensors.push_back({tensor});
  }
  return tensors;
}

double dot(const PerRank& a, const PerRank& b) {
  double sum = 0;
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    for (std::int64_t i = 0; i < a[rank][0].size(); ++i) sum += a[rank][0].at(i) * b[rank][0].at(i);
  }
  return sum;
}

TEST(Collectives, GradientsAreTheTransposes) {
  const std::function<Value(Value)> all[] = {
      [](Value x) { return all_reduce(x, "model", 3); },
      [](Value x) { return all_gather(x, "model", 3, 1); },
      [](Value x) { return reduce_scatter(x, "data", 2, 0); },
      [](Value x) { return all_to_all(x, "model", 3, 1, 0); },
      [](Value x) { return collective_permute(x, "model", 3, 1); },
  };
  for (const auto& build : all) {
    Graph forward("forward");
    const Value x = forward.input("x", Type(DType::f64, {6, 9})), y = build(x);
    forward.output("y", y);
    const CollectiveGradient backward(forward.node(forward.producer(y.id)), x.type(), y.type());
    const PerRank direction = random_ranks(x.type().shape, 3), w = random_ranks(y.type().shape, 4);
    const PerRank dy = evaluate_on(kMesh, forward, direction), dx = evaluate_on(kMesh, backward.built, w);
    EXPECT_NEAR(dot(w, dy), dot(dx, direction), 1e-12) << forward.node(forward.producer(y.id)).op->name;
  }
}

TEST(Collectives, NoGradientOfAMax) {
  Graph graph("g");
  const Value x = graph.input("x", Type(DType::f64, {6})), y = all_reduce(x, "data", 2, "max");
  EXPECT_THROW(CollectiveGradient(graph.node(graph.producer(y.id)), x.type(), y.type()), Failure);
}

}  // namespace
}  // namespace systole
