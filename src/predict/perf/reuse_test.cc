#include "predict/perf/reuse.h"

#include <gtest/gtest.h>

#include "describe/ir/work.h"
#include "describe/ops/ops.h"
#include "predict/perf/op_time.h"

namespace systole {
namespace {

// Only bytes take time: a cache of 10,000 bytes at 10 bytes a second, memory at 1.
MachineSpeed moving_machine() {
  MachineSpeed speed;
  speed.name = "moving";
  speed.matmul = {{DType::f32, FlopRate(1e30)}};
  speed.chain = speed.kernel = speed.elementary = FlopRate(1e30);
  speed.caches = {{Bytes(10'000), BytesPerSecond(10)}};
  speed.memory = BytesPerSecond(1);
  speed.call = Seconds();
  return speed;
}

Type kilobytes(std::int64_t n) { return Type(DType::f32, {n * 250}); }

std::vector<double> times_of(const Graph& graph, Bytes ago) {
  std::vector<double> times;
  each_kernel(graph, moving_machine(), ago,
              [&](const GraphNode&, Seconds one, double) { times.push_back(one.count()); });
  return times;
}

TEST(Reuse, a_result_is_hot_for_the_next_kernel_and_an_input_is_not) {
  Graph g("chain");
  const Value a = exp(g.input("x", kilobytes(4)));  // 4,000 from memory, to memory last touched 100,000 bytes ago
  const Value b = exp(a);                           // a in the cache
  g.output("y", exp(b));
  EXPECT_EQ(times_of(g, Bytes(100'000)), (std::vector<double>{4000 + 4000, 400 + 4000, 400 + 4000}));
}

TEST(Reuse, over_and_over_all_is_hot_that_fits) {
  Graph g("small");
  g.output("y", exp(g.input("x", kilobytes(5))));
  EXPECT_EQ(touched_by(g), Bytes(10'000));
  EXPECT_EQ(times_of(g, touched_by(g)), (std::vector<double>{1000}));
  EXPECT_EQ(times_of(g, Bytes(10'001)), (std::vector<double>{10'000}));
}

// A value that is read again after too many other bytes comes from memory.
TEST(Reuse, others_push_out) {
  const auto again = [](int between) {
    Graph g("again");
    const Value a = exp(g.input("x", kilobytes(1)));
    Value b = exp(a);
    for (int i = 1; i < between; ++i) b = exp(b);
    g.output("y", add(a, b));
    return times_of(g, Bytes(100'000)).back();
  };
  EXPECT_EQ(again(2), 100 + 100 + 1000);  // a, b, y
  EXPECT_EQ(again(9), 100 + 100 + 1000);  // a and nine others: 10,000
  EXPECT_EQ(again(10), 1000 + 100 + 1000);
}

// The carry of a repeat is hot, its slices come from memory, and shared values are as far away as the bytes of one
// iteration.
TEST(Reuse, in_a_repeat) {
  const auto body_times = [](std::int64_t shared_kilobytes) {
    Graph body("body");
    const Value x = body.input("x", kilobytes(1)), w = body.input("w", kilobytes(1));
    const Value s = body.input("s", kilobytes(shared_kilobytes));
    const int all[] = {0};
    const Value one = reduce_sum(s, all);
    const Value sum = add(x, w);
    body.output("x", add(sum, broadcast(one, x.type(), {})));
    Graph g("g");
    const Value carries[] = {g.input("x", kilobytes(1))}, stacked[] = {g.input("w", Type(DType::f32, {6, 250}))};
    const Value shared[] = {g.input("s", kilobytes(shared_kilobytes))};
    g.output("y", repeat(std::move(body), 6, carries, stacked, shared).carries[0]);
    std::vector<std::pair<double, double>> times;
    each_kernel(g, moving_machine(), Bytes(1'000'000),
                [&](const GraphNode&, Seconds one_call, double runs) { times.emplace_back(one_call.count(), runs); });
    return times;
  };
  const auto few = body_times(2), many = body_times(20);
  ASSERT_EQ(few.size(), 4U);
  EXPECT_NEAR(few[0].first, 204, 1);           // the shared 2,000 from the cache, the sum to memory
  EXPECT_NEAR(many[0].first, 20'000, 5);       // 20,000 do not fit
  EXPECT_EQ(few[1].first, 100 + 1000 + 1000);  // the carry, a slice, the sum
  EXPECT_EQ(few[1].second, 6);
}

// An optimizer writes where it has read; memory has a separate bandwidth for that.
TEST(Reuse, updates) {
  const Type type = kilobytes(20), scalar(DType::f32, {});
  Graph g("update");
  const Sgd step = sgd(g.input("p", type), g.input("g", type), std::nullopt, g.input("scale", scalar),
                       g.input("rate", scalar), g.input("apply", Type(DType::boolean, {})), {});
  g.output("p", step.parameter);
  MachineSpeed speed = moving_machine();
  const double plain = graph_time(g, speed, Bytes(100'000)).total().count();
  speed.update = BytesPerSecond(4);
  EXPECT_NEAR(graph_time(g, speed, Bytes(100'000)).total().count(), plain / 4, 1);
  EXPECT_NEAR(op_time(g, g.nodes().back(), speed).count(), plain / 4, 1);
  EXPECT_NEAR(plain, 60'000, 20);
}

// A lookup touches a few rows of a table.
TEST(Reuse, a_part_of_an_operand) {
  Graph g("lookup");
  const Value table = g.input("table", Type(DType::f32, {1000, 25})), ids = g.input("ids", Type(DType::i32, {10}));
  g.output("y", embedding(table, ids));
  const Work work = work_of(g, g.nodes().front());
  EXPECT_NEAR(times_of(g, Bytes(1'000'000)).front(), static_cast<double>((work.read + work.written).count()), 2);
}

}  // namespace
}  // namespace systole
