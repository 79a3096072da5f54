#include "execute/backends/cpu/kernels/optimizer.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

const std::int64_t kSizes[] = {0, 1, 17, 16384, 16385, 40001};
const float kScale = 0.25f, kRate = 0.01f;
const std::int32_t kCount = 3;

TEST(Adamw, is_its_formula_and_does_nothing_where_told) {
  for (const Elem pe : {Elem::f32, Elem::bf16}) {
    for (const Elem ge : {Elem::f32, Elem::bf16}) {
      for (const std::int64_t n : kSizes) {
        for (const std::uint8_t apply : {1, 0}) {
          Tensor p = random_tensor(pe, n, 1), m = random_tensor(Elem::f32, n, 2), v = random_tensor(Elem::f32, n, 3);
          const Tensor g = random_tensor(ge, n, 4);
          for (std::int64_t i = 0; i < n; ++i) v.set(i, std::abs(v.at(i)));
          const Tensor p0 = p, m0 = m, v0 = v;
          everywhere(
              {&p, &m, &v},
              [&](const Kernels& k, int threads) {
                return k.adamw({p.data(), g.bytes(), m.data(),  v.data(),  p.data(), m.data(), v.data(),
                                pe,       ge,        Elem::f32, Elem::f32, n,        &kScale,  &kRate,
                                &kCount,  &apply,    0.9,       0.95,      1e-8,     0.1,      threads});
              },
              [&](const KernelReport& report) {
                const std::int64_t read = n * (size_of(pe) + size_of(ge) + 8) + 13, written = n * (size_of(pe) + 8);
                expect_report(report, apply ? 16 * n + 2 : 0, apply ? n + 2 : 0, read, written);
                EXPECT_EQ(report.flops + report.skipped_flops, 16 * n + 2);
                EXPECT_EQ(report.transcendentals + report.skipped_transcendentals, n + 2);
                for (std::int64_t i = 0; i < n; ++i) {
                  if (!apply) {
                    ASSERT_TRUE(p.at(i) == p0.at(i) && m.at(i) == m0.at(i) && v.at(i) == v0.at(i));
                    continue;
                  }
                  const double s = g.at(i) * 0.25, m1 = 0.9 * m0.at(i) + 0.1 * s, v1 = 0.95 * v0.at(i) + 0.05 * s * s;
                  const double direction =
                      m1 / (1 - std::pow(0.9, 3)) / (std::sqrt(v1 / (1 - std::pow(0.95, 3))) + 1e-8) + 0.1 * p0.at(i);
                  const double unit = rounding(Elem::f32), size = std::abs(m0.at(i)) + std::abs(s),
                               root = std::sqrt(v1 / (1 - std::pow(0.95, 3)));
                  expect_near(m.at(i), m1, 4 * unit * size, "m");
                  expect_near(v.at(i), v1, 6 * unit * v1, "v");
                  const double step = static_cast<double>(kRate) * direction;
                  expect_near(p.at(i), p0.at(i) - step,
                              1.01 * rounding(pe) * std::abs(p0.at(i) - step) + 2 * unit * std::abs(p0.at(i)) +
                                  40 * unit * 0.01 * (size / root + 1),
                              "p");
                }
              });
        }
      }
    }
  }
}

TEST(Adamw, out_of_place) {
  const std::int64_t n = 100;
  const std::uint8_t applies[] = {0, 1};
  Tensor p = random_tensor(Elem::f32, n, 1), m = random_tensor(Elem::f32, n, 2), v(Elem::f32, n),
         g = random_tensor(Elem::f32, n, 3);
  for (const std::uint8_t& apply : applies) {
    Tensor p1(Elem::f32, n), m1(Elem::f32, n), v1(Elem::f32, n), p2 = p, m2 = m, v2 = v;
    const Kernels& k = kernels_of(best_isa());
    k.adamw({p.data(),  g.data(),  m.data(),  v.data(),  p1.data(), m1.data(), v1.data(),
             Elem::f32, Elem::f32, Elem::f32, Elem::f32, n,         &kScale,   &kRate,
             &kCount,   &apply,    0.9,       0.95,      1e-8,      0.1,       1});
    k.adamw({p2.data(), g.data(),  m2.data(), v2.data(), p2.data(), m2.data(), v2.data(),
             Elem::f32, Elem::f32, Elem::f32, Elem::f32, n,         &kScale,   &kRate,
             &kCount,   &apply,    0.9,       0.95,      1e-8,      0.1,       2});
    EXPECT_TRUE(p1.copy() == p2.copy() && m1.copy() == m2.copy() && v1.copy() == v2.copy());
  }
}

TEST(Sgd, is_its_formula_and_does_nothing_where_told) {
  for (const Elem pe : {Elem::f32, Elem::bf16}) {
    for (const std::int64_t n : kSizes) {
      for (const std::uint8_t apply : {1, 0}) {
        for (const bool momentum : {false, true}) {
          for (const double decay : {0.0, 0.1}) {
            Tensor p = random_tensor(pe, n, 1), m = random_tensor(Elem::f32, n, 2);
            const Tensor g = random_tensor(Elem::f32, n, 4), p0 = p, m0 = m;
            everywhere(
                {&p, &m},
                [&](const Kernels& k, int threads) {
                  return k.sgd({p.data(), g.bytes(), momentum ? m.data() : nullptr, p.data(), m.data(), pe, Elem::f32,
                                Elem::f32, n, &kScale, &kRate, &apply, momentum ? 0.9 : 0.0, decay, threads});
                },
                [&](const KernelReport& report) {
                  const std::int64_t state = momentum ? n * 4 : 0,
                                     flops = n * (3 + (momentum ? 2 : 0) + (decay != 0 ? 2 : 0));
                  expect_report(report, apply ? flops : 0, 0, n * (size_of(pe) + 4) + state + 9,
                                n * size_of(pe) + state);
                  EXPECT_EQ(report.flops + report.skipped_flops, flops);
                  for (std::int64_t i = 0; i < n; ++i) {
                    double step = g.at(i) * 0.25 + decay * p0.at(i);
                    if (momentum) step += 0.9 * m0.at(i);
                    const double size =
                        6 * rounding(Elem::f32) * (std::abs(g.at(i)) + std::abs(p0.at(i)) + std::abs(m0.at(i)));
                    const double p1 = apply ? p0.at(i) - static_cast<double>(kRate) * step : p0.at(i);
                    expect_near(p.at(i), p1, apply ? 1.01 * rounding(pe) * std::abs(p1) + size : 0, "p");
                    expect_near(m.at(i), apply && momentum ? step : m0.at(i), apply ? size : 0, "m");
                  }
                });
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace systole::cpu
