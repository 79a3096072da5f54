#include "predict/perf/op_time.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "predict/perf/reuse.h"
#include "predict/perf/utilisation.h"

namespace systole {
namespace {

// Round numbers: every time below can be computed by hand.
MachineSpeed round_machine() {
  MachineSpeed speed;
  speed.name = "round";
  speed.matmul = {{DType::f32, FlopRate(1e9)}, {DType::bf16, FlopRate(4e9)}};
  speed.attention = {{DType::f32, {FlopRate(5e8), FlopRate(2e7)}}};
  speed.chain = FlopRate(1e8);
  speed.kernel = FlopRate(2e8);
  speed.elementary = FlopRate(1e7);
  speed.memory = BytesPerSecond(1e9);
  speed.call = Seconds(1e-6);
  return speed;
}

Seconds time_of_last(const Graph& graph, const MachineSpeed& speed) {
  return op_time(graph, graph.nodes().back(), speed);
}

Graph square_matmul(std::int64_t n, DType dtype) {
  Graph g("matmul");
  contract(g.input("a", Type(dtype, {n, n})), g.input("b", Type(dtype, {n, n})), "mk,kn->mn");
  return g;
}

TEST(OpTime, a_contraction_computes_and_moves) {
  // 2 · 100³ flops at 1e9: 2 ms; 120,000 bytes at 1e9: 0.12 ms.
  EXPECT_NEAR(time_of_last(square_matmul(100, DType::f32), round_machine()).count(), 2e-3 + 0.12e-3 + 1e-6, 1e-12);
  EXPECT_NEAR(time_of_last(square_matmul(100, DType::bf16), round_machine()).count(), 0.5e-3 + 0.06e-3 + 1e-6, 1e-12);
}

TEST(OpTime, a_server_takes_the_times_of_few_rows) {
  const auto product = [](std::int64_t rows) {
    Graph g("few");
    contract(g.input("x", Type(DType::f32, {rows, 100})), g.input("w", Type(DType::f32, {100, 200})), "mk,kn->mn");
    return g;
  };
  MachineSpeed speed = round_machine();
  speed.served[DType::f32][100] = {{1, FlopRate(1e9), FlopRate(4e9)}, {5, FlopRate(0.5e9), FlopRate(1e9)}};
  EXPECT_NEAR(time_of_last(product(3), speed).count(), 120e-6 + 83.6e-6 + 1e-6, 1e-12) << "of training";
  speed.serves = true;
  // 20,000 weights: 20 µs for a row, 40 µs for five.
  EXPECT_NEAR(time_of_last(product(1), speed).count(), 20e-6 + 1e-6, 1e-12);
  EXPECT_NEAR(time_of_last(product(3), speed).count(), 30e-6 + 1e-6, 1e-12);
  EXPECT_NEAR(time_of_last(product(10), speed).count(), 80e-6 + 1e-6, 1e-12);
  // Of four experts, to each of which three of twelve rows come.
  Graph experts("experts");
  contract(experts.input("x", Type(DType::f32, {1, 4, 3, 100})), experts.input("w", Type(DType::f32, {4, 100, 200})),
           "gxce,xem->gxcm");
  EXPECT_NEAR(time_of_last(experts, speed).count(), 4 * 30e-6 + 1e-6, 1e-12);
  speed.caches = {{Bytes(1 << 20), BytesPerSecond(2e9), BytesPerSecond(2e9)}};
  EXPECT_NEAR(time_of_last(product(1), speed).count(), 5e-6 + 1e-6, 1e-12) << "of the cache";
  // A square of as many weights has a side of 141, half way between 100 and 200.
  speed.caches.clear();
  speed.served[DType::f32][200] = {{1, FlopRate(0.5e9), FlopRate(1e9)}};
  EXPECT_NEAR(time_of_last(product(1), speed).count(), 30e-6 + 1e-6, 1e-12) << "of two sides";
  Graph heads("heads");  // the same matrix, its columns as four heads
  contract(heads.input("x", Type(DType::f32, {1, 100})), heads.input("w", Type(DType::f32, {100, 4, 50})),
           "se,ehd->shd");
  EXPECT_NEAR(time_of_last(heads, speed).count(), 30e-6 + 1e-6, 1e-12) << "of heads";
  speed.served[DType::f32].erase(100);
  EXPECT_NEAR(time_of_last(product(1), speed).count(), 40e-6 + 1e-6, 1e-12) << "below the first side";
  speed.served[DType::f32] = {{50, {{1, FlopRate(2e9), FlopRate(2e9)}}}};
  EXPECT_NEAR(time_of_last(product(1), speed).count(), 10e-6 + 1e-6, 1e-12) << "after the last side";
}

TEST(OpTime, weights_in_int8_move_a_quarter_and_compute_at_their_rate_or_f32s) {
  Graph g("int8");
  contract_int8(g.input("x", Type(DType::f32, {1, 100})), g.input("w", Type(DType::i8, {100, 100})),
                g.input("scale", Type(DType::f32, {100})));
  // 20,302 flops at 1e9; 10,000 bytes of weights and 1,200 others at 1e9.
  MachineSpeed speed = round_machine();
  EXPECT_NEAR(time_of_last(g, speed).count(), 20.302e-6 + 11.2e-6 + 1e-6, 1e-12);
  speed.products = {{{DType::f32, ProductLayout::nn}, {FlopRate(1e3), FlopRate(1e3)}}};  // of contract alone
  EXPECT_NEAR(time_of_last(g, speed).count(), 20.302e-6 + 11.2e-6 + 1e-6, 1e-12);
  speed.matmul[DType::i8] = FlopRate(2e9);
  EXPECT_NEAR(time_of_last(g, speed).count(), 10.151e-6 + 11.2e-6 + 1e-6, 1e-12);
}

TEST(OpTime, a_thin_contraction_moves_more_than_it_computes) {
  Graph g("outer");
  contract(g.input("a", Type(DType::f32, {1000, 1})), g.input("b", Type(DType::f32, {1, 1000})), "mk,kn->mn");
  // 4,008,000 bytes at 1e9 and 2e6 flops at 1e9.
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), 4.008e-3 + 2e-3 + 1e-6, 1e-12);
}

TEST(OpTime, elementwise_is_steps_and_elementary_functions_and_bytes) {
  const Type type(DType::f32, {1000});
  Graph g("elementwise");
  const Value x = g.input("x", type), y = g.input("y", type);
  add(x, y);  // 1,000 steps at 1e8: 10 µs; 12,000 bytes at 1e9: 12 µs
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), 22e-6 + 1e-6, 1e-12);
  add(x, x);  // an operand given twice is read once: 8 µs
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), 18e-6 + 1e-6, 1e-12);
  exp(x);  // 1,000 steps at 1e8, 1,000 elementary functions at 1e7, 8,000 bytes: 118 µs
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), 118e-6 + 1e-6, 1e-12);
}

TEST(OpTime, a_call_that_fits_a_cache_moves_at_its_bandwidth) {
  MachineSpeed speed = round_machine();
  speed.chain = FlopRate(1e18);
  speed.caches = {{Bytes(12'000), BytesPerSecond(12e9)}, {Bytes(100'000), BytesPerSecond(4e9)}};
  const auto sum_time = [&](std::int64_t n) {
    Graph g("sum");
    add(g.input("x", Type(DType::f32, {n})), g.input("y", Type(DType::f32, {n})));
    return time_of_last(g, speed).count();
  };
  EXPECT_NEAR(sum_time(1000), 1e-6 + 1e-6, 1e-12);
  EXPECT_NEAR(sum_time(1001), 3.003e-6 + 1e-6, 1e-12);
  EXPECT_NEAR(sum_time(10'000), 120e-6 + 1e-6, 1e-12);
}

TEST(OpTime, attention_has_a_rate_of_its_own_else_the_matmul_rate) {
  const auto attention_time = [](DType dtype) {
    Graph g("attention");
    const Value q = g.input("q", Type(dtype, {1, 64, 2, 16}));
    attention(q, q, q, {});
    return time_of_last(g, round_machine()).count();
  };
  // Causal: 2 heads × 64 · 65 / 2 pairs × (4 · 16 + 3) flops and 128 queries × 17.
  const double flops = 2 * 2080 * 67 + 128 * 17, elementary = 2 * 2080 + 128;
  EXPECT_NEAR(attention_time(DType::f32), flops / 5e8 + elementary / 2e7 + 1e-6, 1e-12);
  EXPECT_NEAR(attention_time(DType::bf16), flops / 4e9 + elementary / 1e7 + 1e-6, 1e-12);
}

TEST(OpTime, a_query_over_a_cache_takes_at_least_its_bytes) {
  MachineSpeed fast = round_machine();
  fast.attention = {{DType::f32, {FlopRate(1e15), FlopRate(1e15)}}};
  const auto time_of = [&](std::int64_t queries) {
    Graph g("attention");
    const Value q = g.input("q", Type(DType::f32, {1, queries, 2, 16})),
                k = g.input("k", Type(DType::f32, {1, 1000, 2, 16}));
    attention(q, k, k, {.causal = false});
    return time_of_last(g, fast).count();
  };
  EXPECT_NEAR(time_of(1), (4.0 * 1000 * 2 * 16 + 2 * 4 * 2 * 16 + 4 * 2) / 1e9 + 1e-6, 1e-9);  // k alone, which is v
  EXPECT_LT(time_of(2), 2e-6);
}

// 3 of 100 rows of a cache: they are read and written, with the position.
TEST(OpTime, a_write_to_a_cache_moves_its_rows) {
  Graph g("write");
  cache_write(g.input("cache", Type(DType::f32, {1, 100, 8})), g.input("rows", Type(DType::f32, {1, 3, 8})),
              g.input("position", Type(DType::i32, {1})));
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), (2 * 3 * 8 * 4 + 4) / 1e9 + 1e-6, 1e-12);
}

TEST(OpTime, a_chain_takes_as_many_steps_as_it_has_ops) {
  const Type type(DType::f32, {1000});
  Graph chain("chain");
  const Value x = chain.input("0", type);
  chain.output("0", add(mul(x, x), constant(chain, type, 1)));
  Graph g("g");
  const Value operands[] = {g.input("x", type)};
  std::vector<Graph> regions;
  regions.push_back(std::move(chain));
  g.apply("fusion", operands, {}, std::move(regions));
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), 2 * 1000 / 1e8 + 8000 / 1e9 + 1e-6, 1e-12);
}

TEST(OpTime, other_kernels_have_a_rate_of_their_own) {
  Graph g("g");
  const int dims[] = {0};
  reduce_sum(g.input("x", Type(DType::f32, {1000})), dims);  // 1,000 flops at 2e8: 5 µs; 4,004 bytes at 1e9
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), 5e-6 + 4.004e-6 + 1e-6, 1e-12);
}

TEST(OpTime, movement_is_a_roofline) {
  Graph g("g");
  copy(g.input("x", Type(DType::f32, {1000})));
  EXPECT_NEAR(time_of_last(g, round_machine()).count(), 8e-6 + 1e-6, 1e-12);
}

TEST(OpTime, a_contraction_has_the_rate_of_its_kind_where_it_was_measured) {
  MachineSpeed speed = round_machine();
  speed.contraction = {{DType::f32, FlopRate(5e8)}};
  EXPECT_NEAR(time_of_last(square_matmul(100, DType::f32), speed).count(), 4e-3 + 0.12e-3 + 1e-6, 1e-12);
}

TEST(OpTime, a_product_takes_its_layouts_rate_and_elements) {
  MachineSpeed speed = round_machine();
  speed.memory = BytesPerSecond(1e30);
  const auto product = [&](const char* spec, Shape left, Shape right) {
    Graph g("product");
    contract(g.input("a", Type(DType::f32, std::move(left))), g.input("b", Type(DType::f32, std::move(right))), spec);
    return time_of_last(g, speed).count();
  };
  speed.products[{DType::f32, ProductLayout::nn}] = {FlopRate(1e9), FlopRate(1e6)};
  speed.products[{DType::f32, ProductLayout::nt}] = {FlopRate(2e9), FlopRate(2e6)};
  speed.products[{DType::f32, ProductLayout::tn}] = {FlopRate(4e9), FlopRate(4e6)};
  const double flops = 2 * 100 * 20 * 30;
  EXPECT_NEAR(product("mk,kn->mn", {100, 20}, {20, 30}), flops / 1e9 + 5600 / 1e6 + 1e-6, 1e-12);
  EXPECT_NEAR(product("mk,nk->mn", {100, 20}, {30, 20}), flops / 2e9 + 5600 / 2e6 + 1e-6, 1e-12);
  EXPECT_NEAR(product("mk,mn->kn", {100, 20}, {100, 30}), flops / 4e9 + 5600 / 4e6 + 1e-6, 1e-12);
  EXPECT_NEAR(product("emk,ekn->emn", {1, 100, 20}, {1, 20, 30}), flops / 1e9 + 5600 / 1e6 + 1e-6, 1e-12);
  EXPECT_NEAR(product("emk,emn->ekn", {1, 100, 20}, {1, 100, 30}), flops / 4e9 + 5600 / 4e6 + 1e-6, 1e-12);
  EXPECT_NEAR(product("bshd,ehd->bse", {10, 10, 4, 5}, {30, 4, 5}), flops / 2e9 + 5600 / 2e6 + 1e-6, 1e-12);
}

TEST(OpTime, a_chain_whose_steps_were_measured_takes_loads_stores_and_functions) {
  MachineSpeed speed = round_machine();
  speed.memory = BytesPerSecond(1e30);
  speed.steps = {{DType::f32, FlopRate(1e8)}, {DType::bf16, FlopRate(5e7)}};
  speed.functions = {{"gelu_tanh", FlopRate(1e7)}};
  const auto time_of = [&](DType dtype, Value (*op)(Value)) {
    Graph g("g");
    op(g.input("x", Type(dtype, {1000})));
    return time_of_last(g, speed).count() - 1e-6;
  };
  EXPECT_NEAR(time_of(DType::f32, &neg), 3 * 10e-6, 1e-12) << "load, step, store";
  EXPECT_NEAR(time_of(DType::bf16, &neg), 2 * 10e-6 + 20e-6, 1e-12) << "it rounds";
  EXPECT_NEAR(time_of(DType::f32, &gelu_tanh), 2 * 10e-6 + 100e-6, 1e-12);
  EXPECT_NEAR(time_of(DType::bf16, &gelu_tanh), 2 * 10e-6 + 110e-6, 1e-12) << "and rounds besides";
  EXPECT_NEAR(time_of(DType::f32, &tanh), 3 * 10e-6 + 100e-6, 1e-12) << "of which only elementary functions are known";
}

TEST(OpTime, a_kernel_that_was_measured_takes_elements_and_rows_and_hides_what_it_moves) {
  MachineSpeed speed = round_machine();
  speed.kernels[{"softmax", DType::f32}] = {FlopRate(1e8), Seconds(1e-6)};
  const auto time = [&](double serial) {
    speed.serial = serial;
    Graph g("g");
    softmax(g.input("x", Type(DType::f32, {10, 100})));
    return time_of_last(g, speed).count() - 1e-6;
  };
  // 1,000 elements: 10 µs; 10 rows: 10 µs; 8,000 bytes at 1e9: 8 µs.
  EXPECT_NEAR(time(1), 28e-6, 1e-12);
  EXPECT_NEAR(time(0.5), 24e-6, 1e-12);
  EXPECT_NEAR(time(0), 20e-6, 1e-12);
}

TEST(OpTime, writing_has_a_bandwidth_of_its_own) {
  MachineSpeed speed = round_machine();
  speed.write = BytesPerSecond(0.5e9);
  Graph g("g");
  copy(g.input("x", Type(DType::f32, {1000})));
  EXPECT_NEAR(time_of_last(g, speed).count(), 4e-6 + 8e-6 + 1e-6, 1e-12);
  speed.caches = {{Bytes(8000), BytesPerSecond(4e9), BytesPerSecond(2e9)}};
  EXPECT_NEAR(time_of_last(g, speed).count(), 1e-6 + 2e-6 + 1e-6, 1e-12);
}

TEST(OpTime, views_are_free_and_a_repeat_is_its_body_as_often) {
  const Type type(DType::f32, {10, 100});
  Graph body("body");
  body.output("x", exp(body.input("x", type)));
  const Seconds once = graph_time(body, round_machine(), touched_by(body)).total();
  Graph g("stack");
  const Value x = g.input("x", type), carries[] = {x};
  const Value y = repeat(body, 7, carries, {}, {}).carries[0];
  reshape(y, Type(DType::f32, {1000}));
  EXPECT_NEAR(graph_time(g, round_machine(), touched_by(g)).total().count(), 7 * once.count(), 1e-12);
  EXPECT_NEAR(graph_time(g, round_machine(), touched_by(g))[OpClass::elementwise].count(), 7 * once.count(), 1e-12);
  EXPECT_NEAR(op_time(g, g.nodes()[0], round_machine()).count(), 7 * once.count(), 1e-12);
}

TEST(OpTime, more_work_and_slower_machines_never_take_less) {
  double before = 0;
  for (const std::int64_t n : {1, 2, 3, 8, 17, 64, 65, 200, 1000}) {
    const double time = time_of_last(square_matmul(n, DType::f32), round_machine()).count();
    EXPECT_GT(time, before) << n;
    before = time;
    for (const double slower : {0.9, 0.5, 0.1}) {
      MachineSpeed speed = round_machine();
      speed.matmul[DType::f32] = FlopRate(1e9 * slower);
      EXPECT_GE(time_of_last(square_matmul(n, DType::f32), speed).count(), time);
      speed.memory = BytesPerSecond(1e9 * slower);
      EXPECT_GT(time_of_last(square_matmul(n, DType::f32), speed).count(), time);
    }
  }
}

TEST(OpTime, every_op_has_a_class) {
  for (const OpDef* op : all_ops()) {
    if (op->name == std::string_view("repeat")) continue;
    GraphNode node;
    node.op = op;
    EXPECT_NO_THROW(class_of(*node.op)) << op->name;
  }
}

TEST(OpTime, a_type_without_a_rate_is_an_error_that_names_both) {
  try {
    time_of_last(square_matmul(4, DType::f64), round_machine());
    FAIL() << "priced";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::not_found);
    EXPECT_EQ(failure.error().message, "'round' has no matmul rate for f64 (it has f32, bf16)");
  }
}

TEST(OpTime, collectives_of_one_device_are_free_and_of_more_cost_what_their_algorithm_does) {
  Graph one("one"), two("two");
  all_reduce(one.input("x", Type(DType::f32, {8})), "data", 1);
  all_reduce(two.input("x", Type(DType::f32, {1000})), "data", 2);
  MachineSpeed speed = round_machine();
  EXPECT_EQ(graph_time(one, speed, touched_by(one)).total(), Seconds(0));
  EXPECT_THROW(graph_time(two, speed, touched_by(two)), Failure);
  speed.link = LinkCost{Seconds(1e-5), BytesPerSecond(1e9)};
  const Collective collective{CollectiveKind::all_reduce, {2}, Bytes(4000), Bytes(4)};
  const TimeByClass time = graph_time(two, speed, touched_by(two));
  EXPECT_EQ(time[OpClass::collective], cost_of(collective, CollectiveAlgorithm::direct, std::span(&*speed.link, 1)));
  EXPECT_NEAR(time.total().count(), 2 * (1e-5 + 2000 / 1e9), 1e-9);  // two steps of half the bytes
}

TEST(MachineSpeed, rates_must_be_positive_and_caches_in_order) {
  EXPECT_TRUE(check(round_machine()).ok());
  MachineSpeed speed = round_machine();
  speed.memory = BytesPerSecond(0);
  EXPECT_NE(check(speed).error().message.find("memory bandwidth"), std::string::npos);
  speed = round_machine();
  speed.caches = {{Bytes(10), BytesPerSecond(1)}, {Bytes(10), BytesPerSecond(1)}};
  EXPECT_NE(check(speed).error().message.find("cache 1"), std::string::npos);
}

TEST(Utilisation, is_model_flops_over_time_over_rate) {
  EXPECT_DOUBLE_EQ(*utilisation(Flops(500), Seconds(2), FlopRate(1000), "rate"), 0.25);
  EXPECT_DOUBLE_EQ(*utilisation(Flops(2000), Seconds(2), FlopRate(1000), "rate"), 1.0);
}

// Law no-lying-utilisation.
TEST(Utilisation, above_all_of_the_rate_is_withheld_with_both_inputs_named) {
  const auto high =
      utilisation(Flops(3'000'000'000'000), Seconds(2), FlopRate(1e12), "measured matmul rate (f32) of this-machine");
  ASSERT_FALSE(high.ok());
  EXPECT_EQ(high.error().message,
            "utilisation withheld: 3,000,000,000,000 model FLOPs in 2.00 s is 1.50 TFLOP/s, above the measured matmul "
            "rate (f32) of this-machine of "
            "1.00 TFLOP/s; one of the two is wrong");
  EXPECT_FALSE(utilisation(Flops(1), Seconds(0), FlopRate(1), "rate").ok());
  EXPECT_FALSE(utilisation(Flops(1), Seconds(1), FlopRate(0), "rate").ok());
}

}  // namespace
}  // namespace systole
