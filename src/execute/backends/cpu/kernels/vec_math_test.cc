// The elementary functions against libm in double, over samples of all bit patterns.

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

// |got - want| in units of the last place of want as f32.
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : kTestInf;
  if (static_cast<double>(got) == want || got == static_cast<float>(want)) return 0;
  const double size = std::max(std::abs(want), 0x1p-126);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, std::ilogb(size) - 23);
}

void sweep(ChainOp op, const std::function<double(double)>& exact, double most, double absolute = 0) {
  const std::int64_t n = 1 << 20;
  Tensor x(Elem::f32, n), y(Elem::f32, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::uint32_t>(i * 4097 + i % 3);
    std::memcpy(x.as<std::uint32_t>() + i, &bits, 4);
  }
  const std::vector<double> special = {0.0,   -0.0,   1.0,    kTestInf, -kTestInf, kTestNan, 88.72, 88.73,
                                       -87.3, -103.9, -104.1, 1e-45,    1e-40,     0.5,      9.0,   10.0};
  for (std::size_t i = 0; i < special.size(); ++i) x.set(static_cast<std::int64_t>(i), special[i]);
  const ChainStep steps[] = {{.op = ChainOp::load, .dst = 0, .slot = 0},
                             {.op = op, .dst = 1, .a = 0},
                             {.op = ChainOp::store, .a = 1, .slot = 1}};
  void* const pointers[] = {x.data(), y.data()};
  for (const Isa isa : isas_here()) {
    kernels_of(isa).chain({steps, 3, pointers, n, 2});
    double worst = 0, at = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double want = exact(x.at(i));
      if (std::abs(y.at(i) - want) <= absolute) continue;
      const double error = ulps(y.as<float>()[i], want);
      if (!(error <= worst)) {
        worst = error;
        at = x.at(i);
      }
    }
    EXPECT_LE(worst, most) << name_of(isa) << " at " << at;
    ::testing::Test::RecordProperty(name_of(isa), std::to_string(worst));
  }
}

TEST(VecMath, exp) {
  sweep(
      ChainOp::exp, [](double x) { return std::exp(x); }, 1.0);
}
TEST(VecMath, log) {
  sweep(
      ChainOp::log, [](double x) { return std::log(x); }, 1.0);
}
TEST(VecMath, tanh) {
  sweep(
      ChainOp::tanh, [](double x) { return std::tanh(x); }, 2.5);
}
TEST(VecMath, sqrt) {
  sweep(
      ChainOp::sqrt, [](double x) { return std::sqrt(x); }, 0.51);
}
TEST(VecMath, rsqrt) {
  sweep(
      ChainOp::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5);
}
// Denormal results may be 0: e^89 is infinite.
TEST(VecMath, sigmoid) {
  sweep(
      ChainOp::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 2.5, 0x1p-126);
}

// Covers erf through gelu. For large negative x the sum 1 + erf loses digits: the error is absolute, about 2^-24 |x|.
TEST(VecMath, gelu) {
  Tensor x(Elem::f32, 20001), y(Elem::f32, 20001);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(i - 10000) / 1000);
  const ChainStep steps[] = {{.op = ChainOp::load, .dst = 0, .slot = 0},
                             {.op = ChainOp::gelu, .dst = 1, .a = 0},
                             {.op = ChainOp::store, .a = 1, .slot = 1}};
  void* const pointers[] = {x.data(), y.data()};
  for (const Isa isa : isas_here()) {
    kernels_of(isa).chain({steps, 3, pointers, x.size(), 1});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double v = x.at(i), want = v * (1 + std::erf(v / std::sqrt(2.0))) / 2;
      expect_near(y.at(i), want, 3 * 0x1p-24 * std::abs(v), "gelu " + std::to_string(v));
    }
  }
}

}  // namespace
}  // namespace systole::cpu
