// softmax, cross_entropy and the norms against loops in double.

#include "execute/backends/cpu/kernels/rows.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

struct Case {
  std::int64_t rows, n;
};
const Case kCases[] = {{0, 5}, {1, 1}, {3, 7}, {5, 16}, {2, 17}, {33, 65}, {130, 48}, {3, 1001}, {2, 5003}};
const Elem kFloats[] = {Elem::f32, Elem::bf16};

std::byte* bytes_of(const Tensor& t) { return const_cast<std::byte*>(t.bytes()); }
template <typename T>
T* as(const Tensor& t) {
  return reinterpret_cast<T*>(bytes_of(t));
}

std::string at(std::int64_t row, std::int64_t i) { return "row " + std::to_string(row) + ", " + std::to_string(i); }

TEST(Softmax, is_its_formula) {
  for (const Elem elem : kFloats) {
    for (const Case& c : kCases) {
      const Tensor x = random_tensor(elem, c.rows * c.n, 1, 3);
      Tensor y(elem, c.rows * c.n), workspace(Elem::f32, softmax_workspace(elem, c.n, 3) / 4);
      everywhere(
          {&y},
          [&](const Kernels& k, int threads) {
            return k.softmax({x.bytes(), y.data(), elem, c.rows, c.n, workspace.data(), threads});
          },
          [&](const KernelReport& report) {
            const std::int64_t all = c.rows * c.n;
            expect_report(report, 3 * all, all, all * size_of(elem), all * size_of(elem));
            for (std::int64_t row = 0; row < c.rows; ++row) {
              double sum = 0, top = -kTestInf;
              for (std::int64_t i = 0; i < c.n; ++i) top = std::max(top, x.at(row * c.n + i));
              for (std::int64_t i = 0; i < c.n; ++i) sum += std::exp(x.at(row * c.n + i) - top);
              for (std::int64_t i = 0; i < c.n; ++i) {
                const double want = std::exp(x.at(row * c.n + i) - top) / sum;
                // exp of a rounded difference up to 20 in size, a sum, a division.
                expect_near(y.at(row * c.n + i), want,
                            want * (1.01 * rounding(elem) + 30 * rounding(Elem::f32)) + 1e-38, at(row, i));
              }
            }
          });
    }
  }
}

TEST(Softmax, infinities_and_nan) {
  Tensor x(Elem::f32, {-kTestInf, -kTestInf, -kTestInf, 0, -kTestInf, 0, 1, kTestInf, 2, kTestNan, 0, 0}),
      y(Elem::f32, 12);
  everywhere(
      {&y},
      [&](const Kernels& k, int threads) {
        return k.softmax({x.bytes(), y.data(), Elem::f32, 4, 3, nullptr, threads});
      },
      [&](const KernelReport&) {
        for (int i = 0; i < 3; ++i) EXPECT_EQ(y.at(i), 0);
        EXPECT_EQ(y.at(3), 0.5);
        EXPECT_EQ(y.at(4), 0);
        for (int i = 6; i < 12; ++i) EXPECT_TRUE(std::isnan(y.at(i))) << i;
      });
}

double exact_lse(const Tensor& x, std::int64_t row, std::int64_t n) {
  double top = -kTestInf, sum = 0;
  for (std::int64_t i = 0; i < n; ++i) top = std::max(top, x.at(row * n + i));
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x.at(row * n + i) - top);
  return top + std::log(sum);
}

TEST(CrossEntropy, forward_and_gradient_are_their_formulas) {
  for (const Elem elem : kFloats) {
    for (const Case& c : kCases) {
      const Tensor x = random_tensor(elem, c.rows * c.n, 2, 2), g = random_tensor(Elem::f32, c.rows, 3);
      Tensor labels(Elem::i32, c.rows), loss(Elem::f32, c.rows), lse(Elem::f32, c.rows), dx(elem, c.rows * c.n);
      std::int64_t ignored = 0;
      for (std::int64_t row = 0; row < c.rows; ++row) {
        const std::int64_t label = row % 4 == 1 ? -1 : row % 7 == 5 ? c.n + 2 : (row * 31) % c.n;
        labels.set(row, static_cast<double>(label));
        ignored += label < 0 ? 1 : 0;
      }
      const std::int64_t all = c.rows * c.n;
      everywhere(
          {&loss, &lse},
          [&](const Kernels& k, int threads) {
            return k.cross_entropy(
                {x.bytes(), as<std::int32_t>(labels), as<float>(loss), as<float>(lse), elem, c.rows, c.n, threads});
          },
          [&](const KernelReport& report) {
            expect_report(report, 2 * all + 2 * c.rows, all + c.rows, all * size_of(elem) + c.rows * 4, c.rows * 8);
            for (std::int64_t row = 0; row < c.rows; ++row) {
              const double want = exact_lse(x, row, c.n), label = labels.at(row);
              const double picked = label < static_cast<double>(c.n) && label >= 0
                                        ? x.at(row * c.n + static_cast<std::int64_t>(label))
                                        : 0;
              expect_near(lse.at(row), want, 40 * rounding(Elem::f32) * (1 + std::abs(want)), at(row, -1));
              expect_near(loss.at(row), label < 0 ? 0 : want - picked,
                          40 * rounding(Elem::f32) * (1 + std::abs(want) + std::abs(picked)), at(row, -2));
            }
          });
      for (std::int64_t row = 0; row < c.rows; ++row) lse.set(row, exact_lse(x, row, c.n));
      auto check = [&](const KernelReport& report, const Tensor& got) {
        expect_report(report, 3 * (all - ignored * c.n), all - ignored * c.n, all * size_of(elem) + c.rows * 12,
                      all * size_of(elem));
        EXPECT_EQ(report.skipped_flops, 3 * ignored * c.n);
        for (std::int64_t row = 0; row < c.rows; ++row) {
          for (std::int64_t i = 0; i < c.n; ++i) {
            const double p = std::exp(x.at(row * c.n + i) - lse.at(row));
            const double want =
                labels.at(row) < 0 ? 0 : (p - (static_cast<double>(i) == labels.at(row) ? 1 : 0)) * g.at(row);
            expect_near(got.at(row * c.n + i), want,
                        1.01 * rounding(elem) * std::abs(want) + 40 * rounding(Elem::f32) * std::abs(g.at(row)),
                        at(row, i));
          }
        }
      };
      everywhere(
          {&dx},
          [&](const Kernels& k, int threads) {
            return k.cross_entropy_grad({x.bytes(), as<std::int32_t>(labels), as<float>(lse), as<float>(g), dx.data(),
                                         elem, c.rows, c.n, threads});
          },
          [&](const KernelReport& report) { check(report, dx); });
      Tensor in_place = x;
      everywhere(
          {&in_place},
          [&](const Kernels& k, int threads) {
            return k.cross_entropy_grad({in_place.bytes(), as<std::int32_t>(labels), as<float>(lse), as<float>(g),
                                         in_place.data(), elem, c.rows, c.n, threads});
          },
          [&](const KernelReport& report) { check(report, in_place); });
    }
  }
}

struct Norm {
  std::vector<double> mean, rstd;
};
Norm exact_norm(const Tensor& x, const Case& c, bool centred, double eps) {
  Norm norm;
  for (std::int64_t row = 0; row < c.rows; ++row) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < c.n; ++i) sum += x.at(row * c.n + i);
    const double mean = centred ? sum / static_cast<double>(c.n) : 0;
    for (std::int64_t i = 0; i < c.n; ++i) squares += std::pow(x.at(row * c.n + i) - mean, 2);
    norm.mean.push_back(mean);
    norm.rstd.push_back(1 / std::sqrt(squares / static_cast<double>(c.n) + eps));
  }
  return norm;
}

constexpr double kEps = 1e-5;

TEST(Norms, forward) {
  for (const Elem elem : kFloats) {
    for (const Elem scale_elem : kFloats) {
      for (const Case& c : kCases) {
        const Tensor x = random_tensor(elem, c.rows * c.n, 4), scale = random_tensor(scale_elem, c.n, 5),
                     bias = random_tensor(scale_elem, c.n, 6);
        Tensor y(elem, c.rows * c.n), mean(Elem::f32, c.rows), rstd(Elem::f32, c.rows);
        const std::int64_t bytes = c.rows * c.n * size_of(elem);
        auto check = [&](const Norm& want, bool centred) {
          for (std::int64_t row = 0; row < c.rows; ++row) {
            const double r = want.rstd[static_cast<std::size_t>(row)], m = want.mean[static_cast<std::size_t>(row)];
            expect_near(rstd.at(row), r, 60 * rounding(Elem::f32) * r * (c.n == 1 ? 200 : 1), at(row, -1));
            for (std::int64_t i = 0; i < c.n; ++i) {
              const double part = (x.at(row * c.n + i) - m) * r * scale.at(i), v = part + (centred ? bias.at(i) : 0);
              const double inner =
                  (std::abs(x.at(row * c.n + i)) + std::abs(m)) * r * std::abs(scale.at(i)) + std::abs(v);
              expect_near(y.at(row * c.n + i), v,
                          1.01 * rounding(elem) * std::abs(v) + 80 * rounding(Elem::f32) * inner, at(row, i));
            }
          }
        };
        everywhere(
            {&y, &rstd},
            [&](const Kernels& k, int threads) {
              return k.rms_norm(
                  {x.bytes(), scale.bytes(), y.data(), as<float>(rstd), elem, scale_elem, c.rows, c.n, kEps, threads});
            },
            [&](const KernelReport& report) {
              expect_report(report, c.rows * (4 * c.n + 2), c.rows, bytes + c.n * size_of(scale_elem),
                            bytes + c.rows * 4);
              check(exact_norm(x, c, false, kEps), false);
            });
        everywhere(
            {&y, &mean, &rstd},
            [&](const Kernels& k, int threads) {
              return k.layer_norm({x.bytes(), scale.bytes(), bias.bytes(), y.data(), as<float>(mean), as<float>(rstd),
                                   elem, scale_elem, c.rows, c.n, kEps, threads});
            },
            [&](const KernelReport& report) {
              expect_report(report, c.rows * (7 * c.n + 3), c.rows, bytes + 2 * c.n * size_of(scale_elem),
                            bytes + c.rows * 8);
              check(exact_norm(x, c, true, kEps), true);
            });
      }
    }
  }
}

// Gradients of both norms: `centred` is layer_norm.
void check_grad(bool centred, Elem elem, Elem scale_elem, const Case& c, bool with_vectors) {
  const Tensor x = random_tensor(elem, c.rows * c.n, 7), g = random_tensor(elem, c.rows * c.n, 8),
               scale = random_tensor(scale_elem, c.n, 9);
  const Norm norm = exact_norm(x, c, centred, kEps);
  const Tensor mean(Elem::f32, norm.mean), rstd(Elem::f32, norm.rstd);
  Tensor dx(elem, c.rows * c.n), dscale(scale_elem, c.n), dbias(scale_elem, c.n);
  const int vectors = with_vectors ? centred ? 2 : 1 : 0;
  Tensor workspace(Elem::f32, norm_grad_workspace(c.rows, c.n, vectors) / 4);
  void* const to_scale = with_vectors ? dscale.data() : nullptr;
  const std::int64_t bytes = c.rows * c.n * size_of(elem), vector_bytes = c.n * size_of(scale_elem);
  everywhere(
      {&dx, &dscale, &dbias, &workspace},
      [&](const Kernels& k, int threads) {
        if (centred) {
          return k.layer_norm_grad({x.bytes(), scale.bytes(), as<float>(mean), as<float>(rstd), g.bytes(), dx.data(),
                                    to_scale, with_vectors ? dbias.data() : nullptr, elem, scale_elem, c.rows, c.n,
                                    workspace.data(), threads});
        }
        return k.rms_norm_grad({x.bytes(), scale.bytes(), as<float>(rstd), g.bytes(), dx.data(), to_scale, elem,
                                scale_elem, c.rows, c.n, workspace.data(), threads});
      },
      [&](const KernelReport& report) {
        const std::int64_t per = centred ? (with_vectors ? 13 : 10) : (with_vectors ? 9 : 7);
        expect_report(report, c.rows * (per * c.n + (centred ? 2 : 1)), 0,
                      2 * bytes + vector_bytes + c.rows * (centred ? 8 : 4), bytes + vectors * vector_bytes);
        std::vector<double> want_scale(static_cast<std::size_t>(c.n)), want_bias(want_scale), size(want_scale);
        for (std::int64_t row = 0; row < c.rows; ++row) {
          const double r = rstd.at(row), m = centred ? mean.at(row) : 0;
          double h_sum = 0, hn_sum = 0, magnitude = 0;
          for (std::int64_t i = 0; i < c.n; ++i) {
            const double n = (x.at(row * c.n + i) - m) * r, gi = g.at(row * c.n + i), h = gi * scale.at(i);
            h_sum += h;
            hn_sum += h * n;
            magnitude += (std::abs(h) + std::abs(h * n)) / static_cast<double>(c.n);
            want_scale[static_cast<std::size_t>(i)] += gi * n;
            want_bias[static_cast<std::size_t>(i)] += gi;
            size[static_cast<std::size_t>(i)] += std::abs(gi) * (1 + (std::abs(x.at(row * c.n + i)) + std::abs(m)) * r);
          }
          for (std::int64_t i = 0; i < c.n; ++i) {
            const double n = (x.at(row * c.n + i) - m) * r, h = g.at(row * c.n + i) * scale.at(i);
            const double want =
                r * (h - (centred ? h_sum / static_cast<double>(c.n) : 0) - n * hn_sum / static_cast<double>(c.n));
            const double inner = r * (std::abs(h) + magnitude * (1 + std::abs(n) + std::abs(m) * r));
            expect_near(dx.at(row * c.n + i), want,
                        1.01 * rounding(elem) * std::abs(want) + 100 * rounding(Elem::f32) * inner, at(row, i));
          }
        }
        for (std::int64_t i = 0; with_vectors && i < c.n; ++i) {
          const double tolerance = 80 * rounding(Elem::f32) * size[static_cast<std::size_t>(i)];
          const double s = want_scale[static_cast<std::size_t>(i)], b = want_bias[static_cast<std::size_t>(i)];
          expect_near(dscale.at(i), s, 1.01 * rounding(scale_elem) * std::abs(s) + tolerance, at(-1, i));
          if (centred) expect_near(dbias.at(i), b, 1.01 * rounding(scale_elem) * std::abs(b) + tolerance, at(-2, i));
        }
      });
}

TEST(Norms, gradients) {
  for (const bool centred : {false, true}) {
    for (const Elem elem : kFloats) {
      for (const Elem scale_elem : kFloats) {
        for (const Case& c : kCases) {
          for (const bool with_vectors : {false, true}) check_grad(centred, elem, scale_elem, c, with_vectors);
        }
      }
    }
  }
}

}  // namespace
}  // namespace systole::cpu
