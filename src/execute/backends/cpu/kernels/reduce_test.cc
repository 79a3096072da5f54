#include "execute/backends/cpu/kernels/reduce.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

struct Case {
  std::vector<std::int64_t> size;
  std::vector<int> dims;  // reduced dims
};
const std::vector<Case> kCases = {{{}, {}},
                                  {{5}, {}},
                                  {{0}, {0}},
                                  {{1}, {0}},
                                  {{17}, {0}},
                                  {{3, 0}, {0}},
                                  {{3, 0}, {1}},
                                  {{40000}, {0}},
                                  {{3, 33000}, {1}},
                                  {{5, 7}, {0}},
                                  {{300, 129}, {0}},
                                  {{33, 65}, {1}},
                                  {{4, 5, 6}, {1}},
                                  {{4, 5, 6}, {0, 2}},
                                  {{3, 4, 5, 6}, {1, 3}},
                                  {{3, 4, 5, 6}, {0, 2}},
                                  {{2, 300, 131}, {1}},
                                  {{1, 9, 1, 8}, {0, 1}},
                                  {{2, 3, 4, 5}, {0, 1, 2, 3}},
                                  {{70, 20000}, {1}}};

ReduceArgs args_of(ReduceKind kind, const Case& c, const Tensor& x, Tensor& y, int threads) {
  ReduceArgs args{};
  args.kind = kind;
  args.x = x.bytes();
  args.y = y.data();
  args.elem = x.elem();
  args.y_elem = y.elem();
  args.ndim = static_cast<int>(c.size.size());
  for (std::size_t k = 0; k < c.size.size(); ++k) args.size[k] = c.size[k];
  for (const int dim : c.dims) args.reduced[dim] = true;
  args.threads = threads;
  return args;
}

// The index in y of each element of x.
std::vector<std::int64_t> targets(const Case& c, std::int64_t* outputs) {
  std::int64_t n = 1;
  *outputs = 1;
  std::vector<std::int64_t> stride(c.size.size(), 0);
  for (std::size_t k = c.size.size(); k-- > 0;) {
    n *= c.size[k];
    if (std::find(c.dims.begin(), c.dims.end(), static_cast<int>(k)) != c.dims.end()) continue;
    stride[k] = *outputs;
    *outputs *= c.size[k];
  }
  std::vector<std::int64_t> to(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t rest = i;
    for (std::size_t k = c.size.size(); k-- > 0;) {
      to[static_cast<std::size_t>(i)] += rest % c.size[k] * stride[k];
      rest /= c.size[k];
    }
  }
  return to;
}

void check_case(ReduceKind kind, const Case& c, Elem elem, Elem y_elem) {
  std::int64_t outputs = 0;
  const std::vector<std::int64_t> to = targets(c, &outputs);
  const auto n = static_cast<std::int64_t>(to.size());
  const bool integers = elem != Elem::f32 && elem != Elem::bf16;
  const Tensor x = random_tensor(elem, n, 1, integers ? 1000 : 1);
  Tensor y(y_elem, outputs);
  const double empty = kind == ReduceKind::max ? -kTestInf : kind == ReduceKind::min ? kTestInf : 0;
  std::vector<double> want(static_cast<std::size_t>(outputs), empty), size(want.size(), 0);
  for (std::int64_t i = 0; i < n; ++i) {
    double& w = want[static_cast<std::size_t>(to[static_cast<std::size_t>(i)])];
    const double v = x.at(i);
    size[static_cast<std::size_t>(to[static_cast<std::size_t>(i)])] +=
        kind == ReduceKind::sum_of_squares ? v * v : std::abs(v);
    w = kind == ReduceKind::sum              ? w + v
        : kind == ReduceKind::sum_of_squares ? w + v * v
        : kind == ReduceKind::max            ? std::max(w, v)
                                             : std::min(w, v);
  }
  const bool exact = integers || kind == ReduceKind::max || kind == ReduceKind::min;
  everywhere(
      {&y}, [&](const Kernels& k, int threads) { return k.reduce(args_of(kind, c, x, y, threads)); },
      [&](const KernelReport& report) {
        const std::int64_t per = kind == ReduceKind::sum ? 1 : kind == ReduceKind::sum_of_squares ? 2 : 0;
        expect_report(report, per * n, 0, n * size_of(elem), outputs * size_of(y_elem));
        for (std::int64_t i = 0; i < outputs; ++i) {
          const double w = want[static_cast<std::size_t>(i)];
          if (integers && n == 0) continue;
          const double depth = 140 + static_cast<double>(n / std::max<std::int64_t>(outputs, 1)) / 32;
          expect_near(y.at(i), w,
                      exact ? 0
                            : 1.01 * rounding(y_elem) * std::abs(w) +
                                  depth * rounding(Elem::f32) * size[static_cast<std::size_t>(i)],
                      "output " + std::to_string(i));
        }
      });
}

TEST(Reduce, floats) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(to_string(c.size));
    check_case(ReduceKind::sum, c, Elem::f32, Elem::f32);
    check_case(ReduceKind::sum, c, Elem::bf16, Elem::f32);
    check_case(ReduceKind::sum, c, Elem::bf16, Elem::bf16);
    check_case(ReduceKind::sum_of_squares, c, Elem::bf16, Elem::f32);
    check_case(ReduceKind::max, c, Elem::f32, Elem::f32);
    check_case(ReduceKind::min, c, Elem::bf16, Elem::bf16);
  }
}

TEST(Reduce, integers) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(to_string(c.size));
    check_case(ReduceKind::sum, c, Elem::i32, Elem::i32);
    check_case(ReduceKind::sum, c, Elem::i64, Elem::i64);
    check_case(ReduceKind::sum, c, Elem::i32, Elem::i64);
    check_case(ReduceKind::sum, c, Elem::boolean, Elem::i32);
    check_case(ReduceKind::max, c, Elem::i32, Elem::i32);
    check_case(ReduceKind::min, c, Elem::i64, Elem::i64);
  }
}

TEST(Reduce, nan_wins) {
  for (const std::int64_t n : {3, 70}) {
    for (const int dim : {0, 1}) {
      Tensor x = random_tensor(Elem::f32, n * n, 2);
      x.set(n + 1, kTestNan);
      Tensor y(Elem::f32, n);
      const Case c{{n, n}, {dim}};
      for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min}) {
        everywhere(
            {&y}, [&](const Kernels& k, int threads) { return k.reduce(args_of(kind, c, x, y, threads)); },
            [&](const KernelReport&) {
              for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y.at(i)), i == 1) << i;
            });
      }
    }
  }
}

}  // namespace
}  // namespace systole::cpu
