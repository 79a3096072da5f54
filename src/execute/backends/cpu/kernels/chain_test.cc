#include "execute/backends/cpu/kernels/chain.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

const std::int64_t kSizes[] = {0, 1, 7, 16, 511, 512, 513, 8192, 8193, 20011};

// One op on one or two operands.
struct OneOp {
  ChainOp op;
  int arity;
  std::function<double(double, double)> exact;
  double tolerance;  // relative to the sum of absolute terms, in units of rounding
};

double gelu_tanh_slope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

const std::vector<OneOp>& ops() {
  static const std::vector<OneOp> list = {
      {ChainOp::neg, 1, [](double a, double) { return -a; }, 1},
      {ChainOp::exp, 1, [](double a, double) { return std::exp(a); }, 3},
      {ChainOp::tanh, 1, [](double a, double) { return std::tanh(a); }, 4},
      {ChainOp::sigmoid, 1, [](double a, double) { return 1 / (1 + std::exp(-a)); }, 4},
      {ChainOp::gelu, 1, [](double a, double) { return a * (1 + std::erf(a / std::sqrt(2.0))) / 2; }, 6},
      {ChainOp::gelu_tanh, 1,
       [](double a, double) { return 0.5 * a * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a))); }, 8},
      {ChainOp::silu, 1, [](double a, double) { return a / (1 + std::exp(-a)); }, 6},
      {ChainOp::relu, 1, [](double a, double) { return a > 0 ? a : 0; }, 1},
      {ChainOp::add, 2, [](double a, double b) { return a + b; }, 1},
      {ChainOp::sub, 2, [](double a, double b) { return a - b; }, 1},
      {ChainOp::mul, 2, [](double a, double b) { return a * b; }, 1},
      {ChainOp::div, 2, [](double a, double b) { return a / b; }, 1},
      {ChainOp::max, 2, [](double a, double b) { return a < b ? b : a; }, 1},
      {ChainOp::min, 2, [](double a, double b) { return b < a ? b : a; }, 1},
      {ChainOp::gelu_grad, 2,
       [](double a, double g) {
         return g * ((1 + std::erf(a / std::sqrt(2.0))) / 2 + a * std::exp(-a * a / 2) / std::sqrt(2 * M_PI));
       },
       12},
      {ChainOp::gelu_tanh_grad, 2, [](double a, double g) { return g * gelu_tanh_slope(a); }, 24},
      {ChainOp::silu_grad, 2,
       [](double a, double g) {
         const double y = 1 / (1 + std::exp(-a));
         return g * y * (1 + a * (1 - y));
       },
       12},
  };
  return list;
}

TEST(Chain, each_op_is_its_formula) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    for (const OneOp& one : ops()) {
      for (const std::int64_t n : kSizes) {
        SCOPED_TRACE(static_cast<int>(one.op));
        const Tensor a = random_tensor(elem, n, 1), b = random_tensor(elem, n, 2);
        Tensor y(elem, n);
        const ChainStep steps[] = {{.op = ChainOp::load, .elem = elem, .dst = 0, .slot = 0},
                                   {.op = ChainOp::load, .elem = elem, .dst = 1, .slot = 1},
                                   {.op = one.op, .elem = elem, .dst = 2, .a = 0, .b = 1},
                                   {.op = ChainOp::store, .elem = elem, .a = 2, .slot = 2}};
        void* const pointers[] = {const_cast<std::byte*>(a.bytes()), const_cast<std::byte*>(b.bytes()), y.data()};
        everywhere(
            {&y},
            [&](const Kernels& kernels, int threads) {
              return kernels.chain({steps, 4, pointers, n, threads});
            },
            [&](const KernelReport& report) {
              const ChainCost cost = cost_of(one.op);
              expect_report(report, n * cost.flops, n * cost.transcendentals, 2 * n * size_of(elem), n * size_of(elem));
              for (std::int64_t i = 0; i < n; ++i) {
                const double want = one.exact(a.at(i), b.at(i)),
                             scale = std::abs(want) +
                                     (one.tolerance > 1 ? std::abs(one.arity == 2 ? b.at(i) : a.at(i)) : 0);
                const double tolerance =
                    rounding(elem) * std::abs(want) * 1.01 + one.tolerance * rounding(Elem::f32) * scale;
                expect_near(y.at(i), want, tolerance, "element " + std::to_string(i));
              }
            });
      }
    }
  }
}

TEST(Chain, a_fused_chain_has_the_bits_of_its_ops_one_by_one) {
  const std::int64_t n = 1543;
  const Tensor a = random_tensor(Elem::bf16, n, 3), b = random_tensor(Elem::bf16, n, 4);
  Tensor middle(Elem::bf16, n), middle2(Elem::bf16, n), apart(Elem::bf16, n), fused(Elem::bf16, n);
  auto* pa = const_cast<std::byte*>(a.bytes());
  auto* pb = const_cast<std::byte*>(b.bytes());
  const Elem h = Elem::bf16;
  const ChainStep mul[] = {{.op = ChainOp::load, .elem = h, .dst = 0, .slot = 0},
                           {.op = ChainOp::load, .elem = h, .dst = 1, .slot = 1},
                           {.op = ChainOp::mul, .elem = h, .dst = 0, .a = 0, .b = 1},
                           {.op = ChainOp::store, .elem = h, .a = 0, .slot = 2}};
  const ChainStep add[] = {mul[0], mul[1], {.op = ChainOp::add, .elem = h, .dst = 0, .a = 0, .b = 1}, mul[3]};
  const ChainStep tanh[] = {
      mul[0], {.op = ChainOp::tanh, .elem = h, .dst = 1, .a = 0}, {.op = ChainOp::store, .elem = h, .a = 1, .slot = 1}};
  const ChainStep all[] = {mul[0],
                           mul[1],
                           {.op = ChainOp::mul, .elem = h, .dst = 2, .a = 0, .b = 1},
                           {.op = ChainOp::add, .elem = h, .dst = 2, .a = 2, .b = 1},
                           {.op = ChainOp::tanh, .elem = h, .dst = 3, .a = 2},
                           {.op = ChainOp::store, .elem = h, .a = 3, .slot = 2}};
  for (const Isa isa : isas_here()) {
    const Kernels& kernels = kernels_of(isa);
    void* const p1[] = {pa, pb, middle.data()};
    void* const p2[] = {middle.data(), pb, middle2.data()};
    void* const p3[] = {middle2.data(), apart.data()};
    void* const p4[] = {pa, pb, fused.data()};
    kernels.chain({mul, 4, p1, n, 1});
    kernels.chain({add, 4, p2, n, 1});
    kernels.chain({tanh, 3, p3, n, 1});
    const KernelReport report = kernels.chain({all, 6, p4, n, 2});
    EXPECT_TRUE(apart.copy() == fused.copy());
    expect_report(report, 2 * n, n, 2 * n * 2, n * 2);  // intermediate values are not moved
  }
}

TEST(Chain, operands_repeat_by_their_pattern) {
  const std::int64_t rows = 67, columns = 37, n = rows * columns;
  Tensor row = random_tensor(Elem::f32, columns, 5), column = random_tensor(Elem::bf16, rows, 6),
         scalar = random_tensor(Elem::f32, 1, 7), y(Elem::f32, n);
  const ChainStep steps[] = {{.op = ChainOp::load, .dst = 0, .slot = 0, .pattern = {1, columns}},
                             {.op = ChainOp::load, .elem = Elem::bf16, .dst = 1, .slot = 1, .pattern = {columns, rows}},
                             {.op = ChainOp::load, .dst = 2, .slot = 2, .pattern = {1, 1}},
                             {.op = ChainOp::add, .dst = 0, .a = 0, .b = 1},
                             {.op = ChainOp::mul, .dst = 0, .a = 0, .b = 2},
                             {.op = ChainOp::iota, .dst = 1, .pattern = {1, columns}},
                             {.op = ChainOp::constant, .dst = 2, .value = 0.5},
                             {.op = ChainOp::mul, .dst = 1, .a = 1, .b = 2},
                             {.op = ChainOp::add, .dst = 0, .a = 0, .b = 1},
                             {.op = ChainOp::store, .a = 0, .slot = 3}};
  void* const pointers[] = {row.data(), column.data(), scalar.data(), y.data()};
  everywhere(
      {&y},
      [&](const Kernels& kernels, int threads) {
        return kernels.chain({steps, 10, pointers, n, threads});
      },
      [&](const KernelReport& report) {
        expect_report(report, 4 * n, 0, columns * 4 + rows * 2 + 4, n * 4);
        for (std::int64_t i = 0; i < n; ++i) {
          const auto sum = static_cast<float>(row.at(i % columns) + column.at(i / columns));
          const auto want =
              static_cast<double>(sum * static_cast<float>(scalar.at(0))) + 0.5 * static_cast<double>(i % columns);
          expect_near(y.at(i), want, rounding(Elem::f32) * (std::abs(want) + 20), "element " + std::to_string(i));
        }
      });
}

TEST(Chain, integers_bools_and_casts) {
  const std::int64_t n = 1027;
  Tensor a(Elem::i32, n), b(Elem::i32, n), wide(Elem::i64, n), less(Elem::boolean, n), picked(Elem::i32, n),
      as_float(Elem::bf16, n), sum(Elem::i64, n), finite(Elem::boolean, n);
  for (std::int64_t i = 0; i < n; ++i) {
    a.set(i, static_cast<double>(i * 37 % 101 - 50));
    b.set(i, static_cast<double>(i * 53 % 89 - 40));
    wide.as<std::int64_t>()[i] = (std::int64_t{1} << 40) + i;
  }
  const ChainStep steps[] = {{.op = ChainOp::load, .elem = Elem::i32, .dst = 0, .slot = 0},
                             {.op = ChainOp::load, .elem = Elem::i32, .dst = 1, .slot = 1},
                             {.op = ChainOp::load, .elem = Elem::i64, .dst = 0, .slot = 2},
                             {.op = ChainOp::lt, .elem = Elem::boolean, .from = Elem::i32, .dst = 2, .a = 0, .b = 1},
                             {.op = ChainOp::select, .elem = Elem::i32, .dst = 3, .a = 2, .b = 0, .c = 1},
                             {.op = ChainOp::cast, .elem = Elem::bf16, .from = Elem::i32, .dst = 4, .a = 3},
                             {.op = ChainOp::cast, .elem = Elem::i64, .from = Elem::i32, .dst = 1, .a = 3},
                             {.op = ChainOp::add, .elem = Elem::i64, .dst = 1, .a = 1, .b = 0},
                             {.op = ChainOp::log, .elem = Elem::f32, .dst = 5, .a = 4},
                             {.op = ChainOp::is_finite, .elem = Elem::boolean, .from = Elem::f32, .dst = 6, .a = 5},
                             {.op = ChainOp::logical_and, .elem = Elem::boolean, .dst = 6, .a = 6, .b = 2},
                             {.op = ChainOp::store, .elem = Elem::boolean, .a = 2, .slot = 3},
                             {.op = ChainOp::store, .elem = Elem::i32, .a = 3, .slot = 4},
                             {.op = ChainOp::store, .elem = Elem::bf16, .a = 4, .slot = 5},
                             {.op = ChainOp::store, .elem = Elem::i64, .a = 1, .slot = 6},
                             {.op = ChainOp::store, .elem = Elem::boolean, .a = 6, .slot = 7}};
  void* const pointers[] = {a.data(),      b.data(),        wide.data(), less.data(),
                            picked.data(), as_float.data(), sum.data(),  finite.data()};
  everywhere(
      {&less, &picked, &as_float, &sum, &finite},
      [&](const Kernels& kernels, int threads) {
        return kernels.chain({steps, 16, pointers, n, threads});
      },
      [&](const KernelReport& report) {
        expect_report(report, n, n, n * 16, n * (1 + 4 + 2 + 8 + 1));
        for (std::int64_t i = 0; i < n; ++i) {
          const bool lt = a.at(i) < b.at(i);
          const double pick = lt ? a.at(i) : b.at(i);
          ASSERT_EQ(less.at(i), lt ? 1 : 0);
          ASSERT_EQ(picked.at(i), pick);
          ASSERT_EQ(as_float.at(i), rounded(DType::bf16, pick));
          ASSERT_EQ(sum.as<std::int64_t>()[i], (std::int64_t{1} << 40) + i + static_cast<std::int64_t>(pick));
          ASSERT_EQ(finite.at(i), lt && pick > 0 ? 1 : 0);
        }
      });
}

TEST(Chain, nan_and_infinity_go_where_the_reference_sends_them) {
  Tensor a(Elem::f32, {kTestNan, 1, kTestInf, -kTestInf, kTestNan, -0.0}),
      b(Elem::f32, {1, kTestNan, 1, 1, kTestNan, 0.0});
  Tensor top(Elem::f32, 6), low(Elem::f32, 6), relu(Elem::f32, 6), ne(Elem::boolean, 6), truncated(Elem::i32, 6);
  const ChainStep steps[] = {{.op = ChainOp::load, .dst = 0, .slot = 0},
                             {.op = ChainOp::load, .dst = 1, .slot = 1},
                             {.op = ChainOp::max, .dst = 2, .a = 0, .b = 1},
                             {.op = ChainOp::min, .dst = 3, .a = 0, .b = 1},
                             {.op = ChainOp::relu, .dst = 4, .a = 0},
                             {.op = ChainOp::ne, .elem = Elem::boolean, .dst = 5, .a = 0, .b = 1},
                             {.op = ChainOp::cast, .elem = Elem::i32, .dst = 6, .a = 0},
                             {.op = ChainOp::store, .a = 2, .slot = 2},
                             {.op = ChainOp::store, .a = 3, .slot = 3},
                             {.op = ChainOp::store, .a = 4, .slot = 4},
                             {.op = ChainOp::store, .elem = Elem::boolean, .a = 5, .slot = 5},
                             {.op = ChainOp::store, .elem = Elem::i32, .a = 6, .slot = 6}};
  void* const pointers[] = {a.data(), b.data(), top.data(), low.data(), relu.data(), ne.data(), truncated.data()};
  everywhere(
      {&top, &low, &relu, &ne, &truncated},
      [&](const Kernels& kernels, int threads) {
        return kernels.chain({steps, 12, pointers, 6, threads});
      },
      [&](const KernelReport&) {
        for (const std::int64_t i : {0, 1, 4}) EXPECT_TRUE(std::isnan(top.at(i)) && std::isnan(low.at(i))) << i;
        EXPECT_EQ(top.at(2), kTestInf);
        EXPECT_EQ(low.at(3), -kTestInf);
        EXPECT_TRUE(std::isnan(relu.at(0)));
        EXPECT_EQ(relu.at(3), 0);
        EXPECT_EQ(ne.at(0), 1);
        EXPECT_EQ(ne.at(5), 0);
        EXPECT_EQ(truncated.at(0), 0);
        EXPECT_EQ(truncated.at(2), 2147483647.0);
        EXPECT_EQ(truncated.at(3), -2147483648.0);
      });
}

}  // namespace
}  // namespace systole::cpu
