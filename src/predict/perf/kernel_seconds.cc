#include "predict/perf/kernel_seconds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ir/work.h"

namespace systole {
namespace {

// As std::ceil, for x >= 0; calls of std::ceil were most of the cost of pricing a product.
double rounded_up(double x) {
  if (!(x < 0x1p52)) return x;  // an integer, or not a number
  const auto below = static_cast<double>(static_cast<std::int64_t>(x));
  return below < x ? below + 1 : below;
}

double padded(double n, double to) { return rounded_up(n / to) * to; }

// Tile shapes of CUTLASS and cuBLAS, and the fraction of the largest tile's rate that each reaches.
struct Tile {
  double rows, columns, reached;
};
constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, .95},
                           {128, 64, .80},  {64, 128, .80},  {64, 64, .65}};
constexpr double kRamp = 160;      // filling a tile's pipeline costs as much as this many terms
constexpr double kScoreRamp = 64;  // for the short sums of scores
constexpr double kTail = 0.5;      // lost fraction of the idle part of the last wave; the next kernel hides the rest
constexpr double kCutSum = 1.05;   // split-k: the partial sums are added up
constexpr double kLeastTerms = 512;

constexpr std::array kCuts{1.0, 2.0, 4.0, 8.0};  // split-k factors

double tiled_seconds(const Accelerator& chip, const ProductDims& d, double rate, double ramp) {
  const auto m = static_cast<double>(d.rows), n = static_cast<double>(d.columns), k = static_cast<double>(d.summed),
             batch = static_cast<double>(d.batch), cores = static_cast<double>(std::max<std::int64_t>(1, chip.cores));
  std::array<double, kCuts.size()> ramped;
  std::size_t cuts = 0;
  while (cuts < kCuts.size() && (cuts == 0 || k / kCuts[cuts] >= kLeastTerms)) {
    ramped[cuts] = k / kCuts[cuts] / (k / kCuts[cuts] + ramp);
    ++cuts;
  }
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double down = rounded_up(m / tile.rows), across = rounded_up(n / tile.columns);
    const double blocks = down * across * batch, flops = 2 * batch * (down * tile.rows) * (across * tile.columns) * k;
    if (flops >= best * (rate * tile.reached)) continue;  // even if every wave were full
    for (std::size_t c = 0; c < cuts; ++c) {
      const double again = c > 0 ? kCutSum : 1;
      if (c > 0 && flops * again >= best * (rate * tile.reached * ramped[c])) break;  // nor with more splits
      const double waves = blocks * kCuts[c] / cores;
      const double full =
          chip.cores == 0 ? 1 : waves / ((1 - kTail) * rounded_up(waves) + kTail * std::max(waves, 1.0));
      best = std::min(best, flops / (rate * tile.reached * full * ramped[c]) * again);
    }
  }
  return best;
}

// Rows are padded to 8; columns and terms to the unit.
double unit_seconds(const Accelerator& chip, const ProductDims& d, double rate, double ramp) {
  const auto unit = static_cast<double>(chip.unit), k = static_cast<double>(d.summed);
  const double m = static_cast<double>(d.rows), n = static_cast<double>(d.columns);
  const double flops = 2 * static_cast<double>(d.batch) * padded(k, unit) *
                       std::min(padded(m, 8) * padded(n, unit), padded(n, 8) * padded(m, unit));
  return flops * (1 + ramp / 2 / k) / rate;
}

double element_bytes(ProductType type) {
  if (in_32_bits(type)) return 4;
  return type == ProductType::bf16 ? 2 : type == ProductType::fp4 ? 0.5 : 1;
}

// Fewer rows or columns than the smallest tile has, by half.
constexpr std::int64_t kNarrow = 32;

double narrow_seconds(const ProductDims& d, double rate) {
  const auto few = static_cast<double>(std::min(d.rows, d.columns)),
             many = static_cast<double>(std::max(d.rows, d.columns));
  return 2 * static_cast<double>(d.batch) * padded(few, 8) * many * static_cast<double>(d.summed) / rate;
}

double product_seconds(const Accelerator& chip, const ProductDims& d, ProductType type, double ramp,
                       bool narrow = false) {
  const Accelerator::Products& products = products_of(chip, type);
  const double rate = products.peak.count() * products.reached;
  const double computing = chip.tpu                                           ? unit_seconds(chip, d, rate, ramp)
                           : narrow && std::min(d.rows, d.columns) <= kNarrow ? narrow_seconds(d, rate)
                                                                              : tiled_seconds(chip, d, rate, ramp);
  const auto m = static_cast<double>(d.rows), n = static_cast<double>(d.columns), k = static_cast<double>(d.summed);
  const double result = in_32_bits(type) ? 4 : 2;
  const double bytes = static_cast<double>(d.batch) * ((m + n) * k * element_bytes(type) + result * m * n);
  return std::max(computing, bytes / (chip.memory.count() * chip.memory_reached));
}

// Operand rows that are not multiples of 16 bytes miss the tensor cores' fast loads: 5 to 20 times slower, measured on
// heads of 54 and 108 (bigscience, A100); we use 10.
constexpr double kUnaligned = 10;

// Bytes moved per score, forward and backward: with Megatron's fused kernel of mask and softmax (written in 16 bits,
// read and written by it and by dropout, read by the second product), and with single kernels in f32 where it does not
// apply (megatron/core/fusions/fused_softmax.py, is_kernel_available).
struct ScoreBytes {
  double forward, backward;
};
constexpr ScoreBytes kFusedScores{13, 19}, kSingleScores{35, 40};
constexpr std::int64_t kMostFusedKeys = 2048;

}  // namespace

double product_seconds(const Accelerator& chip, const ProductDims& dims, ProductType type) {
  return product_seconds(chip, dims, type, kRamp);
}

double narrow_product_seconds(const Accelerator& chip, const ProductDims& dims, ProductType type) {
  return product_seconds(chip, dims, type, kRamp, true);
}

double fused_attention_seconds(const Accelerator& chip, const Accelerator::Attention& kernel,
                               const AttentionShape& shape, bool backward) {
  const auto rows = static_cast<double>(shape.rows), queries = static_cast<double>(shape.queries),
             head = static_cast<double>(shape.head);
  // In blocks on the diagonal half of the work is wasted.
  const double diagonal = shape.causal ? 1 + 96 / std::max(shape.keys, 1.0) : 1;
  const double narrow = shape.head <= 64 ? kernel.narrow : shape.head < 128 ? (1 + kernel.narrow) / 2 : 1;
  const double blocks = rounded_up(queries / 128) * rows;
  const double waves = chip.cores == 0 ? 1 : rounded_up(blocks / static_cast<double>(chip.cores));
  const double full = chip.cores == 0 ? 1 : blocks / (waves * static_cast<double>(chip.cores));
  const double forward = 4 * rows * queries * shape.keys * head * diagonal;
  const double rate = chip.products.at(ProductType::bf16).peak.count() * narrow * full;
  return backward ? 2.5 * forward / (rate * kernel.backward) : forward / (rate * kernel.forward);
}

UnfusedAttention unfused_attention_seconds(const Accelerator& chip, const AttentionShape& shape, bool backward,
                                           ProductType type) {
  const ProductDims scores{shape.rows, shape.queries, shape.keys_of_row, shape.head},
      mixed{shape.rows, shape.queries, shape.head, shape.keys_of_row};
  UnfusedAttention result;
  result.products = product_seconds(chip, scores, type, kScoreRamp) + product_seconds(chip, mixed, type, kRamp);
  if (shape.head % 8 != 0) result.products *= kUnaligned;
  const bool fused =
      !in_32_bits(type) && shape.rows % 4 == 0 && shape.keys_of_row % 4 == 0 && shape.keys_of_row <= kMostFusedKeys;
  const ScoreBytes& bytes = fused ? kFusedScores : kSingleScores;
  const double count =
      static_cast<double>(shape.rows) * static_cast<double>(shape.queries) * static_cast<double>(shape.keys_of_row);
  result.moved = count * (backward ? bytes.backward : bytes.forward) / (chip.memory.count() * chip.memory_reached);
  if (backward) result.products *= 2;
  result.kernels = (fused ? 4 : 8) * (backward ? 2 : 1);
  return result;
}

bool has_one_query(const Graph& graph, const GraphNode& node) { return graph.type(node.operands[0]).size(1) == 1; }

AttentionShape attention_shape(const Graph& graph, const GraphNode& node) {
  const Type &q = graph.type(node.operands[0]), &k = graph.type(node.operands[1]);  // [batch, seq, heads, head]
  AttentionShape shape;
  shape.rows = q.size(0) * q.size(2);
  shape.queries = q.size(1);
  const bool paged = is(node, "paged_attention");
  shape.keys_of_row = paged ? k.size(1) * graph.type(node.operands[3]).size(1) : k.size(1);
  shape.head = q.size(3);
  const bool backward = is(node, "attention_grad");
  shape.causal = paged || node.attrs.get_bool("causal");
  GraphNode first_time = node;  // recomputation has no model flops
  first_time.recomputed = false;
  shape.keys = static_cast<double>(work_of(graph, first_time).model_flops) /
               ((backward ? 8 : 4) * static_cast<double>(shape.head) * static_cast<double>(shape.rows) *
                static_cast<double>(shape.queries));
  return shape;
}

}  // namespace systole
