// Resharding from any layout to any other: the moves, run on a fake mesh, end in the target layout.

#include "describe/partition/moves.h"

#include <gtest/gtest.h>

#include "describe/ops/testing/cut.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

const Type kType(DType::f64, {12, 18, 24});

HostTensor counted(const Shape& shape) {
  HostTensor tensor(DType::f64, shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i + 1));
  return tensor;
}

// Runs the moves on the shards of `whole`.
PerRank played(const HostTensor& whole, const Layout& from, std::span<const Move> moves, const Mesh& mesh) {
  const Type type(whole.dtype(), whole.shape());
  Graph graph("moves");
  const Value x = graph.input("x", local_type(type, from, mesh));
  std::vector<Value> places;
  for (const Axis& axis : mesh.axes()) places.push_back(graph.input(axis.name, Type(DType::i64, {})));
  graph.output("y", build_moves(x, moves, mesh, [&](int axis) { return places[static_cast<std::size_t>(axis)]; }));
  PerRank inputs;
  for (std::int64_t device = 0; device < mesh.num_devices(); ++device) {
    inputs.push_back({cut(whole, from, mesh, device)});
    for (const std::int64_t place : mesh.coordinates(device)) {
      const double number[] = {static_cast<double>(place)};
      inputs.back().push_back(HostTensor(DType::i64, {}, number));
    }
  }
  return evaluate_on(fake(mesh), graph, inputs);
}

void expect_moved(const Shape& shape, const Layout& from, const Layout& to, const Mesh& mesh) {
  const HostTensor whole = counted(shape);
  const Type type(DType::f64, shape);
  const std::vector<Move> moves = moves_between(type, from, to, mesh);
  const PerRank outputs = played(whole, from, moves, mesh);
  std::vector<HostTensor> parts;
  for (const std::vector<HostTensor>& rank : outputs) parts.push_back(rank[0]);
  const std::string what = to_string(from, type.ndim(), mesh) + " to " + to_string(to, type.ndim(), mesh);
  ASSERT_EQ(parts[0].shape(), local_type(type, to, mesh).shape) << what;
  EXPECT_TRUE(uncut(parts, shape, to, mesh) == whole) << what;
  for (std::int64_t device = 0; !to.partial() && device < mesh.num_devices(); ++device)
    EXPECT_TRUE(parts[static_cast<std::size_t>(device)] == cut(whole, to, mesh, device))
        << what << ", filled with zeros";
}

TEST(Layout, every_way_from_one_to_another_arrives) {
  const Mesh mesh = Mesh::parse("a=2 b=3").value();
  std::vector<Layout> all;
  for (int a = Layout::kPartial; a < 3; ++a) {
    for (int b = Layout::kPartial; b < 3; ++b) all.push_back({{a, b}});
  }
  for (const Layout& from : all) {
    for (const Layout& to : all) expect_moved(kType.shape, from, to, mesh);
  }
}

TEST(Layout, three_axes_drawn_at_random_some_leaving_a_rest) {
  PhiloxStream random(3);
  const Mesh mesh = Mesh::parse("a=2 b=3 c=2").value();
  for (int trial = 0; trial < 150; ++trial) {
    const auto draw = [&] {
      Layout layout;
      for (int a = 0; a < 3; ++a) layout.at.push_back(static_cast<int>(random.below(4)) - 2);
      return layout;
    };
    const Shape shape{5 + static_cast<std::int64_t>(random.below(8)), 12};
    expect_moved(shape, draw(), draw(), mesh);
  }
}

std::string kinds(const Type& type, const Layout& from, const Layout& to, const Mesh& mesh) {
  static constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                           "take_part",  "keep_first",     "pad",        "trim"};
  std::string text;
  for (const Move& move : moves_between(type, from, to, mesh)) {
    text += fmt::format("{}{}({})", text.empty() ? "" : " ", kNames[static_cast<int>(move.kind)],
                        move.axis < 0 ? "" : mesh.axes()[static_cast<std::size_t>(move.axis)].name);
  }
  return text;
}

TEST(Layout, the_cheapest_way_is_taken) {
  const Mesh mesh = Mesh::parse("a=2 b=3").value();
  constexpr int W = Layout::kWhole, P = Layout::kPartial;
  EXPECT_EQ(kinds(kType, {{P, W}}, {{0, W}}, mesh), "reduce_scatter(a)");
  EXPECT_EQ(kinds(kType, {{P, P}}, {{W, 0}}, mesh), "reduce_scatter(b) all_reduce(a)");
  EXPECT_EQ(kinds(kType, {{0, 1}}, {{1, W}}, mesh), "all_gather(b) all_to_all(a)");
  EXPECT_EQ(kinds(kType, {{W, 0}}, {{0, 0}}, mesh), "all_gather(b) take_part(a) take_part(b)");
  EXPECT_EQ(kinds(Type(DType::f64, {10}), {{0, W}}, {{W, 0}}, mesh), "all_gather(a) pad() take_part(b)");
  EXPECT_EQ(kinds(Type(DType::f64, {10}), {{W, 0}}, {{W, W}}, mesh), "all_gather(b) trim()");
}

TEST(Layout, texts) {
  const Mesh mesh = Mesh::parse("data=2 model=3").value();
  EXPECT_EQ(to_string(Layout{{Layout::kPartial, 1}}, 2, mesh), "{}{model} partial(data)");
  EXPECT_EQ(to_string(Layout{{0, 0}}, 1, mesh), "{data,model}");
}

}  // namespace
}  // namespace systole
