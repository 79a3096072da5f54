// contract_int4: x W^T with the weights in four bits, in groups of 32 along k with a scale d and a minimum m each
// (ground/tensor/int4.h has the layout in panels of 16 rows; W[n, i] = d q + m is GGUF's Q4_1). Groups of x are
// quantised to int8 as llama.cpp's Q8_1 are, with a scale of their own:
//
//   t = max |x[r, i]|    s = t / 127    p[i] = nearest even integer of x[r, i] * (127 / t)      for i of group g
//   for each g:  a = fma(d[n, g] * s[g], Σ_i p[i] q[n, i], a)    b = fma(m[n, g], s[g] * Σ_i p[i], b)
//   y[r, n] = a + b
//
// Sums over a group are exact integers; a and b begin at 0 and take the groups in ascending order; each other operation
// is one f32 operation, rounded to nearest, and fma is one. So the law: y[r, :] has the same bits on the reference and
// cpu backends, for any number of threads, and whatever the other rows are. A group with t < 2^-100 counts as zeros. One
// with a value that is not finite gives NaN.
//
// Constraints: contract_int4 C1 x f32[..., k] with k a multiple of 32. C2 w u8[n / 16, k / 32, 256]. C3 scale
// f16[n / 16, k / 32, 32].
// Work: as contract_int8, a multiplication and an addition per product; per group and result five operations, and one
// more per result; per element of x two, per group of it three. All products are model FLOPs.
// Sharding: rows of x. Groups lie in panels, which are not cut.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/quantized_row.h"
#include "ground/tensor/int4.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 3 || call.operand(0).ndim() < 1 || call.operand(0).dtype != DType::f32 ||
      ops::last_size(call.operand(0)) % kInt4Group != 0)
    constraint("contract_int4_c1", "contract_int4 takes x f32[..., k] with k a multiple of {}, w and scale",
               kInt4Group);
  const Type &x = call.operand(0), &w = call.operand(1), &scale = call.operand(2);
  const std::int64_t groups = ops::last_size(x) / kInt4Group;
  if (w.dtype != kInt4 || w.ndim() != 3 || w.size(1) != groups || w.size(2) != kInt4PanelBytes)
    constraint("contract_int4_c2", "w is {} for x {}, not u8[n / {}, {}, {}]", to_string(w), to_string(x), kInt4Panel,
               groups, kInt4PanelBytes);
  if (scale.dtype != DType::f16 || scale.shape != Shape{w.size(0), groups, kInt4PanelScales})
    constraint("contract_int4_c3", "scale is {} for w {}", to_string(scale), to_string(w));
  Type y = ops::without_last(x, DType::f32);
  y.add_dim(w.size(0) * kInt4Panel, "");
  return {y};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const Type& x = call.operand(0);
  const std::int64_t k = ops::last_size(x), groups = k / kInt4Group, count = results[0].num_elements();
  work.model_flops = 2 * count * k;
  work.flops = work.model_flops + count * (5 * groups + 1) + 2 * x.num_elements() + 3 * ops::rows_of(x) * groups;
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  return sharding_rule(rows + ".,...,...->" + rows + ".");
}

// One rounding, which f64 does not give; counted as two operations.
Scalar fused(Scalar a, Scalar b, Scalar c) {
  [[maybe_unused]] const Scalar counted = a * b + c;
  return Scalar(std::fma(static_cast<float>(a.value()), static_cast<float>(b.value()), static_cast<float>(c.value())));
}

struct QuantizedGroup {
  ops::QuantizedRow row;
  Scalar total;  // the scale times the sum of p
};

// Elements [first, first + 32) of x.
QuantizedGroup quantized(const TensorView& x, std::int64_t first) {
  ops::QuantizedRow row = ops::quantized_row(x, first, kInt4Group);
  Scalar sum(0);
  for (const Scalar& p : row.q) sum += p;
  const Scalar total = ops::as_f32(row.scale * sum);
  return {std::move(row), total};
}

// The code of element i of a group in row `in_panel` of its panel, whose bytes begin at `from`.
Scalar code(const TensorView& w, std::int64_t from, std::int64_t in_panel, std::int64_t i) {
  const std::int64_t byte = w.integer(from + i % 16 / 4 * 64 + in_panel * 4 + i % 4);
  return Scalar(static_cast<double>(i < 16 ? byte & 15 : byte >> 4));
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &w = call.operands[1], &scale = call.operands[2], &y = call.results[0];
  const std::int64_t k = ops::last_size(x.type), n = w.type.size(0) * kInt4Panel, rows = ops::rows_of(x.type);
  const std::int64_t num_groups = k / kInt4Group;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<QuantizedGroup> groups;
    for (std::int64_t g = 0; g < num_groups; ++g) groups.push_back(quantized(x, r * k + g * kInt4Group));
    for (std::int64_t j = 0; j < n; ++j) {
      Scalar a(0), b(0);
      for (std::int64_t g = 0; g < num_groups; ++g) {
        const QuantizedGroup& group = groups[static_cast<std::size_t>(g)];
        const std::int64_t panel = j / kInt4Panel * num_groups + g, in_panel = j % kInt4Panel;
        Scalar sum(0);  // exact
        for (std::int64_t i = 0; i < kInt4Group; ++i)
          sum += group.row.q[static_cast<std::size_t>(i)] * code(w, panel * kInt4PanelBytes, in_panel, i);
        const std::int64_t at = panel * kInt4PanelScales + in_panel;
        a = fused(ops::as_f32(scale.at(at) * group.row.scale), sum, a);
        b = fused(scale.at(at + kInt4Panel), group.total, b);
      }
      y.set(r * n + j, ops::as_f32(a + b));
    }
  }
}

}  // namespace

OpDef ops::contract_int4_op() {
  OpDef op;
  op.name = "contract_int4";
  op.summary =
      "y = x w^T with w in four bits, in groups of 32 with a scale and a minimum (GGUF's Q4_1), x quantised by groups";
  op.signature = "(x: f32[..., k], w: u8[n / 16, k / 32, 256], scale: f16[n / 16, k / 32, 32]) -> (y: f32[..., n])";
  op.infer = infer;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  return op;
}

Value contract_int4(Value x, Value w, Value scale) {
  return x.graph->apply("contract_int4", std::array{x, w, scale})[0];
}

}  // namespace systole
