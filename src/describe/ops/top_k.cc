// top_k: the `k` largest values of the last dim, largest first, and their indices. Of equal values the lower index
// comes first, so that the choice is the same on every device. NaN is chosen last.
//
// Constraints: C1 one operand of a float type and at least one dim. C2 1 ≤ k ≤ the size of the last dim.
// The gradient goes back to the indices. Work: comparisons count nothing. Sharding: all dims but the last pass.

#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/routing.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 1 || call.operand(0).ndim() < 1 || !is_float(call.operand(0).dtype))
    constraint("top_k_c1", "top_k takes x[..., n] of a float type");
  const Type& x = call.operand(0);
  const std::int64_t k = call.attrs.get_int("k");
  if (k < 1 || k > ops::last_size(x)) constraint("top_k_c2", "the {} largest of {}", k, ops::last_size(x));
  Type values = ops::without_last(x, x.dtype);
  values.add_dim(k, "");
  return {values, values.with(DType::i32)};
}

// Each value is a row of one number, which scatter_rows puts back.
Gradients gradient(GradientCall& call) {
  const std::optional<Value> g = call.cotangent(0);
  if (!g) return {std::nullopt};
  const Type x = call.operand_type(0);
  Type column = g->type();
  column.add_dim(1, "");
  const Value sums = scatter_rows(reshape(*g, column), call.result(1), x.ndim() - 1, ops::last_size(x),
                                  ops::statistic_dtype(x.dtype), x.name(x.ndim() - 1));
  return {cast(reshape(sums, x.with(sums.dtype())), x.dtype)};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &values = call.results[0], &indices = call.results[1];
  const std::int64_t n = ops::last_size(x.type), k = call.attrs.get_int("k");
  for (std::int64_t row = 0; row < ops::rows_of(x.type); ++row) {
    std::vector<bool> taken(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < k; ++j) {
      std::int64_t best = -1;
      for (std::int64_t i = 0; i < n; ++i) {
        if (taken[static_cast<std::size_t>(i)]) continue;
        const double here = x.raw(row * n + i);
        if (best < 0 || here > x.raw(row * n + best) ||
            (x.raw(row * n + best) != x.raw(row * n + best) && here == here))
          best = i;
      }
      taken[static_cast<std::size_t>(best)] = true;
      ops::copy_element(x, row * n + best, values, row * k + j);
      indices.set(row * k + j, Scalar(static_cast<double>(best)));
    }
  }
}

}  // namespace

OpDef ops::top_k_op() {
  OpDef op;
  op.name = "top_k";
  op.summary = "the k largest of the last dim, largest first, and their indices; of equal ones the lower index first";
  op.signature = "(x: float[..., n]) -> (values: x's type[..., k], indices: i32[..., k])";
  op.attrs = {{"k", "int", "how many"}};
  op.infer = infer;
  op.gradient = gradient;
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.sharding = [](const OpCall& call) {
    const std::string rows = ops::letters(call.operand(0).ndim() - 1);
    return sharding_rule(rows + "Y->" + rows + "Z," + rows + "Z", "", "YZ");
  };
  op.reference = reference;
  return op;
}

TopK top_k(Value x, std::int64_t k) {
  const std::vector<Value> made = x.graph->apply("top_k", std::span(&x, 1), {{"k", k}});
  return {made[0], made[1]};
}

}  // namespace systole
