// contract_int4 has the same bits as its formula in plain loops, for every unit, instruction set and number of threads,
// and for a row alone as in company.

#include "execute/backends/cpu/kernels/int4.h"

#include <gtest/gtest.h>

#include <cmath>

#include "execute/backends/cpu/kernels/testing/kernel_test.h"
#include "ground/tensor/int4.h"
#include "ground/tensor/int8.h"

namespace systole::cpu {
namespace {

struct Product {
  std::int64_t rows, n, k;
  std::vector<float> x;
  std::vector<std::uint8_t> w;
  std::vector<std::uint16_t> scales;

  Product(std::int64_t rows_, std::int64_t n_, std::int64_t k_) : rows(rows_), n(n_), k(k_) {
    PhiloxStream random(static_cast<std::uint64_t>(rows * 1000003 + n * 1009 + k), 5);
    for (std::int64_t i = 0; i < rows * k; ++i) x.push_back(static_cast<float>(random.uniform() * 4 - 2));
    for (std::int64_t i = 0; i < n * k / 2; ++i) w.push_back(static_cast<std::uint8_t>(random.next_u32()));
    std::fill_n(w.begin(), std::min<std::int64_t>(256, n * k / 2), std::uint8_t{0xff});  // the largest sums
    for (std::int64_t i = 0; i < n * k / 16; ++i) {
      std::uint16_t bits;
      systole::store(DType::f16, reinterpret_cast<std::byte*>(&bits), 0, random.uniform() * 0.02 - 0.01);
      scales.push_back(bits);
    }
    if (rows > 1) std::fill_n(x.begin() + k, k, 0.0F);
    if (rows > 2) std::fill_n(x.begin() + 2 * k, k, -3e38F);
    if (rows > 3 && k > 0) x[static_cast<std::size_t>(4 * k - 1)] = std::numeric_limits<float>::infinity();
    if (rows > 4 && k > 0) x[static_cast<std::size_t>(4 * k)] = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(x.begin(), std::min<std::int64_t>(32, rows * k), 1.5F);
  }

  std::vector<float> wanted() const {
    std::vector<float> y;
    const std::int64_t groups = k / 32;
    std::array<std::int8_t, 32> q;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        float a = 0, b = 0;
        for (std::int64_t g = 0; g < groups; ++g) {
          const float s = quantize_row(std::span(x).subspan(static_cast<std::size_t>(r * k + g * 32), 32), q);
          const Int4Block block = block_at(k, j, g, w, scales);
          std::int32_t sum = 0, total = 0;
          for (std::size_t i = 0; i < 32; ++i) {
            sum += q[i] * (block.codes[i % 16] >> (i / 16 * 4) & 15);
            total += q[i];
          }
          a = std::fma(from_half(block.scale) * s, static_cast<float>(sum), a);
          b = std::fma(from_half(block.minimum), s * static_cast<float>(total), b);
        }
        y.push_back(a + b);
      }
    }
    return y;
  }
};

std::vector<float> run(const Product& p, Isa isa, Int8Unit unit, int threads) {
  Tensor y(Elem::f32, p.rows * p.n), workspace(Elem::boolean, contract_int4_workspace(p.rows, p.k));
  std::memset(workspace.data(), 0x5a, static_cast<std::size_t>(workspace.size()));
  const KernelReport report = kernels_of(isa).contract_int4(
      {p.x.data(), p.w.data(), p.scales.data(), y.as<float>(), p.rows, p.n, p.k, unit, workspace.data(), threads});
  EXPECT_TRUE(y.intact());
  EXPECT_TRUE(workspace.intact());
  const std::int64_t groups = p.k / 32;
  expect_report(report, p.rows * p.n * (2 * p.k + 5 * groups + 1) + p.rows * (2 * p.k + 3 * groups), 0,
                4 * p.rows * p.k + p.n * groups * 20, 4 * p.rows * p.n);
  return {y.as<float>(), y.as<float>() + y.size()};
}

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want, std::int64_t n) {
  ASSERT_EQ(got.size(), want.size());
  int told = 0;
  for (std::size_t i = 0; i < got.size() && told < 3; ++i) {
    if (std::memcmp(&got[i], &want[i], 4) == 0 || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    ++told;
    ADD_FAILURE() << "row " << i / static_cast<std::size_t>(n) << " column " << i % static_cast<std::size_t>(n) << ": "
                  << got[i] << ", want " << want[i];
  }
}

// What multiplies here, amx not: it takes vnni's way.
std::vector<Int8Unit> units_of(Isa isa) {
  if (best_int8_unit(isa) == Int8Unit::pairs) return {Int8Unit::pairs};
  return {Int8Unit::pairs, Int8Unit::vnni};
}

TEST(ContractInt4, IsItsFormulaToTheBit) {
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 15, 33}) {
    for (const auto& [n, k] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{16, 32}, {16, 64}, {32, 96}, {48, 160}, {144, 576}}) {
      if (rows > 8 && n == 144) continue;  // slow without optimisation
      const Product p(rows, n, k);
      const std::vector<float> want = p.wanted();
      for (const Isa isa : isas_here()) {
        for (const Int8Unit unit : units_of(isa)) {
          for (const int threads : {1, 3}) {
            SCOPED_TRACE(fmt::format("{} unit {}: {} rows, n {}, k {}, {} threads", name_of(isa),
                                     static_cast<int>(unit), rows, n, k, threads));
            expect_same_bits(run(p, isa, unit, threads), want, n);
          }
        }
      }
    }
  }
}

TEST(ContractInt4, EmptySizesGiveZerosOrNothing) {
  for (const Isa isa : isas_here()) {
    for (const Int8Unit unit : units_of(isa)) {
      EXPECT_EQ(run(Product(6, 16, 0), isa, unit, 2), std::vector<float>(96, 0.0F));
      EXPECT_TRUE(run(Product(0, 16, 32), isa, unit, 2).empty());
      EXPECT_TRUE(run(Product(6, 0, 32), isa, unit, 2).empty());
    }
  }
}

// Prefill and decode, alone and among 512: a row's bits are its own.
TEST(ContractInt4, ARowAloneIsTheRowInCompany) {
  const Product all(512, 32, 128);
  for (const Isa isa : isas_here()) {
    for (const Int8Unit unit : units_of(isa)) {
      const std::vector<float> together = run(all, isa, unit, 2);
      for (const std::int64_t count : {1, 2, 3, 5, 16, 100}) {
        Product some = all;
        const std::int64_t first = 511 - count;
        some.rows = count;
        some.x.assign(all.x.begin() + first * all.k, all.x.begin() + (first + count) * all.k);
        expect_same_bits(run(some, isa, unit, 1),
                         {together.begin() + first * all.n, together.begin() + (first + count) * all.n}, all.n);
      }
    }
  }
}

}  // namespace
}  // namespace systole::cpu
