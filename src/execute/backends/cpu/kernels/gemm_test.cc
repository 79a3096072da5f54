// gemm against sums in double: all edges, strides and types, and lengths below and above a split of k.

#include "execute/backends/cpu/kernels/gemm.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

struct Case {
  std::int64_t m, n, k;
  char a, b;  // the stride of each operand that is 1: 'k', 'r'ow, or 'n'either
};
const Case kCases[] = {{1, 1, 1, 'k', 'k'},      {14, 32, 16, 'k', 'r'},    {13, 31, 17, 'k', 'k'},
                       {15, 33, 15, 'r', 'r'},   {6, 16, 40, 'r', 'k'},     {200, 70, 33, 'k', 'r'},
                       {3, 1100, 20, 'k', 'k'},  {340, 1, 50, 'r', 'r'},    {37, 45, 513, 'k', 'k'},
                       {29, 40, 1500, 'r', 'k'}, {20, 1056, 600, 'k', 'r'}, {19, 35, 21, 'n', 'n'}};

// [rows, k] with gaps between the rows.
struct Operand {
  Tensor data;
  std::int64_t row, step;
  std::vector<double> values;

  Operand(Elem elem, std::int64_t rows, std::int64_t k, char unit, std::uint64_t stream)
      : data(random_tensor(elem, unit == 'n' ? 2 * rows * (k + 3) : (rows + 3) * (k + 3), stream)),
        row(unit == 'k'   ? k + 3
            : unit == 'r' ? 1
                          : 2),
        step(unit == 'k'   ? 1
             : unit == 'r' ? rows + 2
                           : 2 * rows) {
    for (std::int64_t i = 0; i < data.size(); ++i) values.push_back(data.at(i));
  }
  GemmOperand operand() const { return {data.bytes(), row, step}; }
  double at(std::int64_t i, std::int64_t p) const { return values[static_cast<std::size_t>(i * row + p * step)]; }
};

TEST(Gemm, sums_of_products) {
  for (const Elem in : {Elem::f32, Elem::bf16}) {
    for (const Elem out : {Elem::f32, Elem::bf16}) {
      for (const Case& z : kCases) {
        SCOPED_TRACE(fmt::format("{}{} m {} n {} k {} {}{}", name_of(dtype_of(in)), name_of(dtype_of(out)), z.m, z.n,
                                 z.k, z.a, z.b));
        const Operand a(in, z.m, z.k, z.a, 1), b(in, z.n, z.k, z.b, 2);
        const std::int64_t c_row = z.n + 5;
        std::vector<double> exact, sizes;
        for (std::int64_t i = 0; i < z.m; ++i) {
          for (std::int64_t j = 0; j < z.n; ++j) {
            double sum = 0, size = 0;
            for (std::int64_t p = 0; p < z.k; ++p) {
              const double product = a.at(i, p) * b.at(j, p);
              sum += product;
              size += std::abs(product);
            }
            exact.push_back(sum);
            sizes.push_back(size);
          }
        }
        Tensor c(out, z.m * c_row), workspace(Elem::f32, gemm_workspace(z.m, z.n, z.k, out, 3) / 4);
        for (std::int64_t i = 0; i < c.size(); ++i) c.set(i, 7);
        everywhere(
            {&c},
            [&](const Kernels& kernels, int threads) {
              return kernels.gemm(
                  {z.m, z.n, z.k, in, out, a.operand(), b.operand(), c.data(), c_row, workspace.data(), threads});
            },
            [&](const KernelReport& report) {
              EXPECT_TRUE(workspace.intact());
              expect_report(report, 2 * z.m * z.n * z.k, 0, (z.m + z.n) * z.k * size_of(in), z.m * z.n * size_of(out));
              for (std::int64_t i = 0; i < z.m; ++i) {
                for (std::int64_t j = 0; j < c_row; ++j) {
                  const auto at = static_cast<std::size_t>(i * z.n + j);
                  const double want = j < z.n ? exact[at] : 7, size = j < z.n ? sizes[at] : 0;
                  expect_near(
                      c.at(i * c_row + j), want,
                      static_cast<double>(z.k + 2) * rounding(Elem::f32) * size + 1.01 * rounding(out) * std::abs(want),
                      fmt::format("c {} {}", i, j));
                }
              }
            });
      }
    }
  }
}

// Few rows are computed from B as it lies, in one way where its rows are short and in another where they are long, and
// many from a packed panel: an element of C has the same bits.
TEST(Gemm, an_element_has_the_same_bits_whatever_the_rows_beside_it) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    struct Weights {
      char unit;
      std::int64_t n, k;
    };
    for (const Weights& z : {Weights{'k', 1100, 530}, Weights{'r', 1100, 1030}, Weights{'r', 2100, 530}}) {
      const std::int64_t m = 70, n = z.n, k = z.k;
      const Operand a(elem, m, k, 'k', 1), b(elem, n, k, z.unit, 2);
      for (int isa = 0; isa < kNumIsas; ++isa) {
        if (!supports(static_cast<Isa>(isa))) continue;
        const auto rows = [&](std::int64_t first, std::int64_t count) {
          Tensor c(elem, count * n), workspace(Elem::f32, gemm_workspace(count, n, k, elem, 2) / 4);
          GemmOperand part = a.operand();
          part.data = a.data.bytes() + first * a.row * size_of(elem);
          kernels_of(static_cast<Isa>(isa))
              .gemm({count, n, k, elem, elem, part, b.operand(), c.data(), n, workspace.data(), 2});
          EXPECT_TRUE(c.intact() && workspace.intact());
          return c.copy();
        };
        const std::vector<std::byte> whole = rows(0, m);
        for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 8, 15, 32, 33}) {
          const std::vector<std::byte> some = rows(30, count);
          EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin() + 30 * n * size_of(elem)))
              << name_of(dtype_of(elem)) << " " << z.unit << " " << n << " columns, " << count << " rows";
        }
      }
    }
  }
}

// An infinity or NaN in an operand affects its row and column of C and no other.
TEST(Gemm, what_is_not_finite_stays_where_it_belongs) {
  const std::int64_t m = 20, n = 40, k = 30;
  Operand a(Elem::bf16, m, k, 'k', 1), b(Elem::bf16, n, k, 'k', 2);
  a.data.set(17 * a.row + 29, kTestInf);
  Tensor c(Elem::f32, m * n), workspace(Elem::f32, gemm_workspace(m, n, k, Elem::f32, 3) / 4);
  everywhere(
      {&c},
      [&](const Kernels& kernels, int threads) {
        return kernels.gemm(
            {m, n, k, Elem::bf16, Elem::f32, a.operand(), b.operand(), c.data(), n, workspace.data(), threads});
      },
      [&](const KernelReport&) {
        for (std::int64_t i = 0; i < m * n; ++i) EXPECT_EQ(std::isfinite(c.at(i)), i / n != 17) << i;
      });
}

}  // namespace
}  // namespace systole::cpu
