// The scratchpad of oneDNN 2.6's matmul, from its sources (cpu/x64/matmul/brgemm_matmul_utils.cpp,
// cpu/matmul/gemm_based_common.hpp), compared with the library by contract_test. Two implementations serve products:
//
// * The blocked one, on AVX-512 if all three matrices are dense. Each thread copies a block of the left operand (if
//   transposed) and of the right one (if its layout is not the kernel's), and has its own sums if the result is not f32
//   or is added to. Its blocks are at most 256 × 64 × 1,024; with AMX they fit the second-level cache.
// * The general one otherwise. It needs an f32 sum of the whole result per thread, if the result is not f32.

#include "execute/backends/cpu/contract_scratch.h"

#include <algorithm>
#include <bit>

namespace systole::cpu {
namespace {

constexpr std::int64_t kLine = 64, kColumns = 64;           // bytes of a cache line; columns of a block
constexpr std::int64_t kCall = 512;                         // bytes of a list of blocks to multiply
constexpr std::int64_t kPadding = 8 * 128;                  // alignment of each of its few parts
constexpr std::int64_t kMostCache = std::int64_t{4} << 20;  // second-level cache per core, on any machine with AMX

std::int64_t rounded(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
bool power_of_two(std::int64_t n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); }

struct Matmul {
  const ContractPlan& plan;
  std::int64_t k, elem;
  bool bf16, sums_apart, f32_result;  // sums_apart: separate from the result
  int threads;

  // With a dim of size 1 it is unknown which layout oneDNN sees.
  bool open() const { return plan.m == 1 || plan.n == 1 || k == 1; }

  bool dense() const {
    const auto& [lb, lm, lk] = plan.left;
    const auto& [rb, rk, rn] = plan.right;
    const bool left = (lk == 1 && lm == k) || (lm == 1 && lk == plan.m),
               right = (rn == 1 && rk == plan.n) || (rk == 1 && rn == k), out = plan.out.m == plan.n;
    const bool batches = plan.batch == 1 || (lb == plan.m * k && rb == k * plan.n && plan.out.batch == plan.m * plan.n);
    return left && right && out && batches;
  }

  // The left operand is copied if it is transposed, or if its rows would map to the same cache sets.
  bool copies_left() const {
    return plan.left.k != 1 || open() || (bf16 && power_of_two(k) && k >= 4096 && plan.m >= 1024);
  }

  // Bytes for a K that is split among idle threads, each with its own sums of the whole result.
  std::int64_t cut_sums() const {
    const bool idle = threads > plan.batch * ((plan.n + kColumns - 1) / kColumns);
    const bool cut = idle && (plan.left.k != 1 || open()) && k >= 2048;
    return cut ? 4 * plan.m * plan.n : 0;
  }

  std::int64_t blocked() const {
    const std::int64_t rows = std::min<std::int64_t>(plan.m, 256), depth = std::min<std::int64_t>(k, 1024);
    const std::int64_t line = kLine / elem;
    const std::int64_t left = copies_left() ? elem * rows * (rounded(depth, line) + line) : 0;
    const std::int64_t right = elem * kColumns * rounded(depth, line);
    const std::int64_t chunks = copies_left() ? std::min<std::int64_t>(16, (plan.n + kColumns - 1) / kColumns) : 1;
    const std::int64_t sums = std::max(sums_apart ? 4 * kColumns * rows * chunks : 0, cut_sums());
    return threads * (left + right + sums + kCall) + kPadding;
  }

  std::int64_t tiled() const {
    const std::int64_t rows = 4 * std::min<std::int64_t>(plan.m, 64), line = kLine / elem;
    const std::int64_t depth = 2 * (rounded(k, line) + 2 * line);
    const std::int64_t whole = elem * (rows + kColumns) * depth, fitting = 2 * (kMostCache * 3 / 4) + (1 << 18);
    const bool cut = threads >= 16 && k > 1024 && plan.batch == 1;
    const std::int64_t sums = std::max(sums_apart ? 4 * kColumns * rows * 6 : 0, cut ? 4 * plan.m * plan.n : 0);
    const std::int64_t batch = kCall * (k / 32 + 2), tiles = 4096;
    return threads * (std::min(whole, fitting) + sums + batch + tiles) + kPadding;
  }

  std::int64_t general() const {
    if (f32_result) return 0;
    const std::int64_t result = plan.batch * plan.m * plan.n;
    return threads * 4 * rounded(std::min(plan.m * plan.n, result), kLine) + kPadding;
  }
};

}  // namespace

std::int64_t matmul_scratch(const ContractPlan& plan, std::int64_t k, DType operand, DType y, bool adds, DnnlIsa isa,
                            int threads) {
  const bool bf16 = operand == DType::bf16;
  const Matmul matmul{plan, k, size_of(operand), bf16, y != DType::f32 || adds, y == DType::f32, threads};
  const bool blocked = isa >= (bf16 ? DnnlIsa::avx512_bf16 : DnnlIsa::avx512);
  if (!blocked || !matmul.dense()) {
    const std::int64_t perhaps = blocked && matmul.open() ? matmul.blocked() : 0;
    return std::max(matmul.general(), perhaps);
  }
  std::int64_t most = matmul.blocked();
  if (matmul.open()) most = std::max(most, matmul.general());
  if (bf16 && isa == DnnlIsa::amx) most = std::max(most, matmul.tiled());
  return most;
}

}  // namespace systole::cpu
