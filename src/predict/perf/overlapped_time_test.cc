#include "predict/perf/overlapped_time.h"

#include <gtest/gtest.h>

#include <array>

#include "describe/ops/ops.h"
#include "describe/partition/overlap_collectives.h"
#include "predict/perf/reuse.h"

namespace systole {
namespace {

// A product takes 2 us; a gather of 200 B from each of two ranks takes 0.5 us, and 1 us for its bytes; all else 0.
MachineSpeed round_machine() {
  MachineSpeed speed;
  speed.name = "round";
  speed.matmul = {{DType::f32, FlopRate(1e9)}};
  speed.chain = speed.kernel = speed.elementary = FlopRate(1e18);
  speed.memory = BytesPerSecond(1e18);
  speed.link = LinkCost{Seconds(0.5e-6), BytesPerSecond(2e8)};
  return speed;
}

Graph layers(std::int64_t count) {
  Graph body("layer");
  const Value x = body.input("x", Type(DType::f32, {10, 10})), w = body.input("w", Type(DType::f32, {5, 10}));
  body.output("x", contract(x, all_gather(w, "fsdp", 2, 0), "be,eh->bh"));
  Graph g("forward");
  const Value in = g.input("x", Type(DType::f32, {10, 10}));
  Parameter p;
  p.name = "w", p.type = Type(DType::f32, {count, 5, 10});
  const Value stored = g.parameter(p);
  g.output("x", repeat(std::move(body), count, std::array{in}, std::array{stored}, {}).carries[0]);
  return g;
}

double microseconds(const Graph& graph, const MachineSpeed& speed) {
  const std::optional<Seconds> time = overlapped_time(graph, speed, touched_by(graph));
  return time.value_or(graph_time(graph, speed, touched_by(graph)).total()).count() * 1e6;
}

TEST(OverlappedTime, the_longer_of_two_counts_where_they_overlap) {
  for (const std::int64_t count : {2, 3, 4, 5, 8, 100}) {
    const Graph plain = layers(count), ahead = overlap_collectives(plain);
    MachineSpeed speed = round_machine();
    const auto n = static_cast<double>(count);
    EXPECT_FALSE(overlapped_time(plain, speed, touched_by(plain)).has_value());
    EXPECT_NEAR(microseconds(plain, speed), n * 3.5, 1e-6);
    EXPECT_NEAR(microseconds(ahead, speed), 1.5 + n * 2, 1e-6) << count;
    // Gathers take longer than products: the links are never idle.
    speed.link->bandwidth = BytesPerSecond(2e8 / 3);
    EXPECT_NEAR(microseconds(ahead, speed), n * 3.5 + 2, 1e-6) << count;
    // If the ranks' threads move the bytes, only the waiting overlaps.
    speed = round_machine();
    speed.cores_move_bytes = true;
    EXPECT_NEAR(microseconds(ahead, speed), n * 3, 1e-6) << count;
  }
}

TEST(OverlappedTime, a_sum_read_later_runs_beside_what_comes_between) {
  Graph g("g");
  const Value x = g.input("x", Type(DType::f32, {10, 10}));
  const Value sum = all_reduce(contract(x, x, "ik,kj->ij"), "data", 2);
  g.output("other", contract(x, x, "ik,jk->ij"));
  g.output("sum", neg(sum));
  MachineSpeed speed = round_machine();
  EXPECT_NEAR(microseconds(g, speed), 2 + 3 + 2, 1e-6);
  EXPECT_NEAR(microseconds(overlap_collectives(g), speed), 2 + 3, 1e-6);
}

}  // namespace
}  // namespace systole
