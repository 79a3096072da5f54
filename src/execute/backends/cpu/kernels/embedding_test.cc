#include "execute/backends/cpu/kernels/embedding.h"

#include <numbers>

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

struct Case {
  std::int64_t ids, vocab, width;
};
const Case kCases[] = {{0, 3, 4}, {1, 1, 1}, {7, 5, 3}, {40, 9, 65}, {130, 31, 200}};

Tensor ids_of(const Case& c) {
  Tensor ids(Elem::i32, c.ids);
  for (std::int64_t i = 0; i < c.ids; ++i)
    ids.set(i, i % 6 == 4    ? -1
               : i % 11 == 7 ? static_cast<double>(c.vocab)
                             : static_cast<double>((i * i * 7) % c.vocab));
  return ids;
}

bool inside(double id, const Case& c) { return id >= 0 && id < static_cast<double>(c.vocab); }

TEST(Embedding, rows_and_zeros_outside) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    for (const Case& c : kCases) {
      const Tensor table = random_tensor(elem, c.vocab * c.width, 1);
      Tensor ids = ids_of(c), y(elem, c.ids * c.width);
      everywhere(
          {&y},
          [&](const Kernels& k, int threads) {
            return k.embedding(
                {table.bytes(), ids.as<std::int32_t>(), y.data(), elem, c.ids, c.vocab, c.width, threads});
          },
          [&](const KernelReport& report) {
            expect_report(report, 0, 0, c.ids * 4 + std::min(c.vocab, c.ids) * c.width * size_of(elem),
                          c.ids * c.width * size_of(elem));
            for (std::int64_t i = 0; i < c.ids * c.width; ++i) {
              const double id = ids.at(i / c.width);
              ASSERT_EQ(y.at(i), inside(id, c) ? table.at(static_cast<std::int64_t>(id) * c.width + i % c.width) : 0);
            }
          });
    }
  }
}

TEST(Embedding, gradient_adds_in_the_order_of_the_ids) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    for (const Case& c : kCases) {
      const Tensor g = random_tensor(elem, c.ids * c.width, 2);
      Tensor ids = ids_of(c), table(Elem::f32, c.vocab * c.width);
      for (std::int64_t i = 0; i < table.size(); ++i) table.set(i, 77);  // overwritten
      std::vector<float> want(static_cast<std::size_t>(c.vocab * c.width));
      std::int64_t outside = 0;
      for (std::int64_t i = 0; i < c.ids; ++i) {
        if (!inside(ids.at(i), c)) {
          ++outside;
          continue;
        }
        for (std::int64_t j = 0; j < c.width; ++j)
          want[static_cast<std::size_t>(static_cast<std::int64_t>(ids.at(i)) * c.width + j)] +=
              static_cast<float>(g.at(i * c.width + j));
      }
      everywhere(
          {&table},
          [&](const Kernels& k, int threads) {
            return k.embedding_grad(
                {ids.as<std::int32_t>(), g.bytes(), table.as<float>(), elem, c.ids, c.vocab, c.width, threads});
          },
          [&](const KernelReport& report) {
            expect_report(report, (c.ids - outside) * c.width, 0, c.ids * (4 + c.width * size_of(elem)),
                          c.vocab * c.width * 4);
            EXPECT_EQ(report.skipped_flops, outside * c.width);
            for (std::int64_t i = 0; i < table.size(); ++i)
              ASSERT_EQ(table.as<float>()[i], want[static_cast<std::size_t>(i)]) << i;  // bit for bit
          });
    }
  }
}

TEST(Rotary, is_its_formula_at_far_positions) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    for (const std::int64_t d : {2, 6, 32, 64, 130}) {
      for (const bool inverse : {false, true}) {
        const std::int64_t tokens = 9, heads = 3, half = d / 2;
        const Tensor x = random_tensor(elem, tokens * heads * d, 3);
        Tensor positions(Elem::i32, {0, 1, 2, 3, 100, 1023, 131071, 1000003, -5}), y(elem, tokens * heads * d);
        Tensor in_place = x;
        for (const bool same : {false, true}) {
          Tensor& out = same ? in_place : y;
          everywhere(
              {&out},
              [&](const Kernels& k, int threads) {
                return k.rotary({same ? out.bytes() : x.bytes(),
                                 positions.as<std::int32_t>(),
                                 out.data(),
                                 elem,
                                 tokens,
                                 heads,
                                 d,
                                 10000,
                                 {},
                                 inverse,
                                 threads});
              },
              [&](const KernelReport& report) {
                const std::int64_t bytes = tokens * heads * d * size_of(elem);
                expect_report(report, tokens * half * (1 + 6 * heads), half * (1 + 2 * tokens), bytes + tokens * 4,
                              bytes);
                for (std::int64_t row = 0; row < tokens * heads; ++row) {
                  for (std::int64_t i = 0; i < half; ++i) {
                    const double angle = (inverse ? -1 : 1) * positions.at(row / heads) *
                                         std::pow(10000.0, static_cast<double>(-2 * i) / static_cast<double>(d));
                    const double a = x.at(row * d + i), b = x.at(row * d + i + half), c = std::cos(angle),
                                 s = std::sin(angle);
                    const double tolerance = rounding(elem) * 1.01 * (std::abs(a) + std::abs(b)) +
                                             3 * rounding(Elem::f32) * (std::abs(a) + std::abs(b));
                    expect_near(out.at(row * d + i), a * c - b * s, tolerance, "low");
                    expect_near(out.at(row * d + i + half), b * c + a * s, tolerance, "high");
                  }
                }
              });
        }
      }
    }
  }
}

// Llama 3.1's: d 128, theta 500000, factor 8. Its 64 frequencies include high, low and intermediate ones.
TEST(Rotary, stretched_frequencies_are_their_formula) {
  const std::int64_t tokens = 5, heads = 2, d = 128, half = d / 2;
  const RotaryStretch stretch{8, 1, 4, 8192};
  const Tensor x = random_tensor(Elem::f32, tokens * heads * d, 3);
  Tensor positions(Elem::i32, {0, 1, 77, 8191, 131071}), y(Elem::f32, tokens * heads * d);
  everywhere(
      {&y},
      [&](const Kernels& k, int threads) {
        return k.rotary({x.bytes(), positions.as<std::int32_t>(), y.data(), Elem::f32, tokens, heads, d, 500000,
                         stretch, false, threads});
      },
      [&](const KernelReport& report) {
        const std::int64_t bytes = tokens * heads * d * 4;
        expect_report(report, tokens * half * (1 + 6 * heads) + 7 * half, half * (1 + 2 * tokens), bytes + tokens * 4,
                      bytes);
        int kinds[3] = {};
        for (std::int64_t i = 0; i < half; ++i) {
          double f = std::pow(500000.0, -2 * static_cast<double>(i) / static_cast<double>(d));
          const double wavelength = 2 * std::numbers::pi / f;
          if (wavelength > 8192) {
            f /= 8;
            ++kinds[0];
          } else if (wavelength >= 8192.0 / 4) {
            const double smooth = (8192 / wavelength - 1) / (4 - 1);
            f = (1 - smooth) * f / 8 + smooth * f;
            ++kinds[1];
          } else {
            ++kinds[2];
          }
          for (std::int64_t row = 0; row < tokens * heads; ++row) {
            const double angle = positions.at(row / heads) * f, c = std::cos(angle), s = std::sin(angle);
            const double a = x.at(row * d + i), b = x.at(row * d + i + half);
            const double tolerance = 4 * rounding(Elem::f32) * (std::abs(a) + std::abs(b));
            expect_near(y.at(row * d + i), a * c - b * s, tolerance, "low");
            expect_near(y.at(row * d + i + half), b * c + a * s, tolerance, "high");
          }
        }
        for (const int count : kinds) EXPECT_GT(count, 3);
      });
}

}  // namespace
}  // namespace systole::cpu
