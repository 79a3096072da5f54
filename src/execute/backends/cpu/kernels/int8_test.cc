// contract_int8 has the same bits as its formula in plain loops, for every unit, instruction set and number of threads,
// and for a row alone as in company.

#include "execute/backends/cpu/kernels/int8.h"

#include <gtest/gtest.h>

#include <array>

#include "execute/backends/cpu/kernels/testing/kernel_test.h"
#include "ground/tensor/int8.h"

namespace systole::cpu {
namespace {

struct Product {
  std::int64_t rows, n, k;
  std::vector<float> x, scale;
  std::vector<std::int8_t> w;

  Product(std::int64_t rows_, std::int64_t n_, std::int64_t k_) : rows(rows_), n(n_), k(k_) {
    PhiloxStream random(static_cast<std::uint64_t>(rows * 1000003 + n * 1009 + k), 5);
    for (std::int64_t i = 0; i < rows * k; ++i) x.push_back(static_cast<float>(random.uniform() * 4 - 2));
    for (std::int64_t i = 0; i < n; ++i) scale.push_back(static_cast<float>(random.uniform() * 0.01 + 1e-4));
    // The extremes often, so that sums are as large as they can be: -128 too, which no quantisation gives.
    for (std::int64_t i = 0; i < n * k; ++i) {
      const auto number = static_cast<std::int32_t>(random.next_u32() % 768) - 384;
      w.push_back(static_cast<std::int8_t>(std::clamp(number, -128, 127)));
    }
    if (rows > 1 && k > 0) std::fill_n(x.begin() + k, k, 0.0F);
    if (rows > 2) std::fill_n(x.begin() + 2 * k, k, -3e38F);
    if (rows > 3 && k > 0) x[static_cast<std::size_t>(4 * k - 1)] = std::numeric_limits<float>::infinity();
    if (rows > 4 && k > 0) x[static_cast<std::size_t>(4 * k)] = std::numeric_limits<float>::quiet_NaN();
  }

  std::vector<float> wanted() const {
    std::vector<float> y;
    std::vector<std::int8_t> q(static_cast<std::size_t>(k));
    for (std::int64_t r = 0; r < rows; ++r) {
      const float s = quantize_row(std::span(x).subspan(static_cast<std::size_t>(r * k), q.size()), q);
      for (std::int64_t j = 0; j < n; ++j) {
        std::int32_t sum = 0;
        for (std::int64_t i = 0; i < k; ++i)
          sum += std::int32_t{q[static_cast<std::size_t>(i)]} * w[static_cast<std::size_t>(j * k + i)];
        y.push_back(s * scale[static_cast<std::size_t>(j)] * static_cast<float>(sum));
      }
    }
    return y;
  }

  ContractInt8Args args(Int8Unit unit, Tensor& y, Tensor& workspace, int threads) const {
    return {x.data(), w.data(), scale.data(), y.as<float>(), rows, n, k, unit, workspace.data(), threads};
  }
};

// The workspace of kernels is aligned to 64.
struct Aligned : Tensor {
  explicit Aligned(std::int64_t bytes) : Tensor(Elem::boolean, bytes + 64) {}
  void* at() { return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(data()) + 63) / 64 * 64); }
};

std::vector<Int8Unit> units_of(Isa isa) {
  std::vector<Int8Unit> units;
  for (int unit = 0; unit <= static_cast<int>(best_int8_unit(isa)); ++unit)
    units.push_back(static_cast<Int8Unit>(unit));
  return units;
}

std::vector<float> run(const Product& p, Isa isa, Int8Unit unit, int threads) {
  Tensor y(Elem::f32, p.rows * p.n);
  Aligned workspace(contract_int8_workspace(p.rows, p.k));
  std::memset(workspace.data(), 0x5a, static_cast<std::size_t>(workspace.size()));
  ContractInt8Args args = p.args(unit, y, workspace, threads);
  args.workspace = workspace.at();
  const KernelReport report = kernels_of(isa).contract_int8(args);
  EXPECT_TRUE(y.intact());
  EXPECT_TRUE(workspace.intact());
  expect_report(report, p.rows * p.n * (2 * p.k + 2) + p.rows * (p.k + 2), 0, 4 * p.rows * p.k + p.n * p.k + 4 * p.n,
                4 * p.rows * p.n);
  return {y.as<float>(), y.as<float>() + y.size()};
}

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want, std::int64_t n) {
  ASSERT_EQ(got.size(), want.size());
  int told = 0;
  for (std::size_t i = 0; i < got.size() && told < 3; ++i) {
    if (std::memcmp(&got[i], &want[i], 4) == 0) continue;
    ++told;
    ADD_FAILURE() << "row " << i / static_cast<std::size_t>(n) << " column " << i % static_cast<std::size_t>(n) << ": "
                  << got[i] << ", want " << want[i];
  }
}

TEST(ContractInt8, IsItsFormulaToTheBit) {
  int tried = 0;
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 21, 24, 25, 33, 48, 300}) {
    for (const auto& [n, k] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                                                 {3, 31},
                                                                                 {4, 32},
                                                                                 {5, 33},
                                                                                 {15, 63},
                                                                                 {16, 64},
                                                                                 {17, 65},
                                                                                 {31, 127},
                                                                                 {33, 128},
                                                                                 {70, 200},
                                                                                 {129, 576},
                                                                                 {16, 4096}}) {
      if (rows == 300 && n * k > 20000) continue;  // slow without optimisation
      const Product p(rows, n, k);
      const std::vector<float> want = p.wanted();
      for (const Isa isa : isas_here()) {
        for (const Int8Unit unit : units_of(isa)) {
          for (const int threads : {1, 3}) {
            SCOPED_TRACE(fmt::format("{} unit {}: {} rows, n {}, k {}, {} threads", name_of(isa),
                                     static_cast<int>(unit), rows, n, k, threads));
            expect_same_bits(run(p, isa, unit, threads), want, n);
            ++tried;
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 100);
}

TEST(ContractInt8, EmptySizesGiveZerosOrNothing) {
  for (const Isa isa : isas_here()) {
    for (const Int8Unit unit : units_of(isa)) {
      EXPECT_EQ(run(Product(6, 3, 0), isa, unit, 2), std::vector<float>(18, 0.0F));
      EXPECT_TRUE(run(Product(0, 3, 4), isa, unit, 2).empty());
      EXPECT_TRUE(run(Product(6, 0, 4), isa, unit, 2).empty());
    }
  }
}

// The most products of the largest numbers: no unit's sums overflow, nor vpdpbusd's correction.
TEST(ContractInt8, TheLargestSumsFit) {
  Product p(6, 2, kMostInt8Products);
  std::ranges::fill(p.x, 1.0F);
  std::fill_n(p.w.begin(), p.k, std::int8_t{-128});
  std::fill_n(p.w.begin() + p.k, p.k, std::int8_t{127});
  for (const Isa isa : isas_here()) {
    for (const Int8Unit unit : units_of(isa)) {
      for (const std::int64_t rows : {1, 2, 4, 6}) {
        p.rows = rows;
        expect_same_bits(run(p, isa, unit, 1), p.wanted(), p.n);
      }
    }
  }
}

// Prefill and decode, alone and in any company: a row's bits are its own.
TEST(ContractInt8, ARowAloneIsTheRowInCompany) {
  const Product all(512, 37, 130);
  for (const Isa isa : isas_here()) {
    for (const Int8Unit unit : units_of(isa)) {
      const std::vector<float> together = run(all, isa, unit, 2);
      const auto rows_alone = [&](std::int64_t first, std::int64_t count) {
        SCOPED_TRACE(fmt::format("{} unit {}: rows {} of {}", name_of(isa), static_cast<int>(unit), first, count));
        Product some = all;
        some.rows = count;
        some.x.assign(all.x.begin() + first * all.k, all.x.begin() + (first + count) * all.k);
        expect_same_bits(run(some, isa, unit, 1),
                         {together.begin() + first * all.n, together.begin() + (first + count) * all.n}, all.n);
      };
      for (std::int64_t count = 1; count <= 40; ++count) rows_alone(count % 7, count);
      for (const std::int64_t count : {63, 64, 100, 239, 241, 500}) rows_alone(512 - count, count);
    }
  }
}

TEST(EmbeddingInt8, IsTheRowTimesItsScale) {
  const std::int64_t v = 7, e = 19;
  Product p(1, v, e);
  const std::array<std::int32_t, 5> ids{3, -1, 6, 7, 3};
  for (const Isa isa : isas_here()) {
    Tensor y(Elem::f32, 5 * e);
    const KernelReport report =
        kernels_of(isa).embedding_int8({p.w.data(), p.scale.data(), ids.data(), y.as<float>(), 5, v, e, 2});
    EXPECT_TRUE(y.intact());
    EXPECT_EQ(report.flops, 3 * e);
    EXPECT_EQ(report.skipped_flops, 2 * e);
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::int32_t id = ids[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < e; ++j) {
        const float want = id < 0 || id >= v ? 0.0F
                                             : p.scale[static_cast<std::size_t>(id)] *
                                                   static_cast<float>(p.w[static_cast<std::size_t>(id * e + j)]);
        EXPECT_EQ(y.as<float>()[i * e + j], want) << i << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace systole::cpu
