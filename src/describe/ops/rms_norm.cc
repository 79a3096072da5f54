// rms_norm over the last dim e, and its gradient (Zhang and Sennrich, arXiv:1910.07467).
//
//   rstd = 1 / sqrt(mean(x²) + eps)      y = x rstd scale
//   with n = x rstd and h = g scale:     dx = rstd (h - n mean(h n))      dscale = Σ over rows of g n
//
// The statistic rstd is a result, so that the gradient reads x once and computes no root. `input_only` omits dscale: a
// frozen scale needs no gradient.
//
// Constraints: C1 operand counts; x has a float type and at least one dim. C2 scale[e] has a float type. C3 eps > 0. C4
// rstd of the gradient is f32 (f64 for f64) of the rows' shape, g has x's type.
// Work: forward, 4 per element, 2 and a root per row; gradient, 9 per element (7 with input_only) and 1 per row.

#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

// Checks x and scale and returns the type of the rows.
Type check_x_and_scale(const OpCall& call, int num_operands) {
  if (call.num_operands() != num_operands || call.operand(0).ndim() < 1 || !is_float(call.operand(0).dtype)) {
    constraint("rms_norm_c1", "{} takes x of a float type with at least one dim and {} more operands", call.op.name,
               num_operands - 1);
  }
  const Type &x = call.operand(0), &scale = call.operand(1);
  if (!is_float(scale.dtype) || scale.shape != Shape{ops::last_size(x)}) {
    constraint("rms_norm_c2", "scale {} of x {}", to_string(scale), to_string(x));
  }
  return ops::without_last(x, ops::statistic_dtype(x.dtype));
}

std::vector<Type> infer(const OpCall& call) {
  const Type row = check_x_and_scale(call, 2);
  if (!(call.attrs.get_double("eps") > 0)) constraint("rms_norm_c3", "eps is {}", call.attrs.get_double("eps"));
  return {call.operand(0), row};
}

std::vector<Type> infer_grad(const OpCall& call) {
  const Type row = check_x_and_scale(call, 4);
  if (!(call.operand(2) == row) || !(call.operand(3) == call.operand(0))) {
    constraint("rms_norm_c4", "rstd {} and g {} of x {}", to_string(call.operand(2)), to_string(call.operand(3)),
               to_string(call.operand(0)));
  }
  if (call.attrs.flag("input_only")) return {call.operand(0)};
  return {call.operand(0), call.operand(1)};
}

Gradients gradient(GradientCall& call) {
  if (call.cotangent(1)) fail(error(ErrorKind::unsupported, "no gradient flows through the rstd of rms_norm"));
  const Value x = call.operand(0), scale = call.operand(1), rstd = call.result(1), g = *call.cotangent(0);
  if (!call.needs(1)) {
    const Value operands[] = {x, scale, rstd, g};
    return {call.graph().apply("rms_norm_grad", operands, {{"input_only", true}})[0], std::nullopt};
  }
  const RmsNormGrad d = rms_norm_grad(x, scale, rstd, g);
  return {d.dx, d.dscale};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const std::int64_t rows = ops::rows_of(call.operand(0)), e = ops::last_size(call.operand(0));
  work.flops = rows * (4 * e + 2);
  work.transcendentals = rows;
  return work;
}

Work work_grad(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const std::int64_t rows = ops::rows_of(call.operand(0)), e = ops::last_size(call.operand(0));
  work.flops = rows * ((call.attrs.flag("input_only") ? 7 : 9) * e + 1);
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  return sharding_rule(rows + "z,z->" + rows + "z," + rows, "", "z");
}

// Sharded rows leave dscale a partial sum; dx is sharded along the rows.
ShardingRule sharding_grad(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  const std::string notation = rows + "z,z," + rows + "," + rows + "z->" + rows + "z";
  if (call.attrs.flag("input_only")) return sharding_rule(notation, "", "z");
  return sharding_rule(notation + ",z", rows, "z");
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &scale = call.operands[1];
  const std::int64_t e = ops::last_size(x.type), rows = ops::rows_of(x.type);
  const Scalar eps(call.attrs.get_double("eps")), count(static_cast<double>(e));
  for (std::int64_t row = 0; row < rows; ++row) {
    Scalar sum(0);
    for (std::int64_t i = 0; i < e; ++i) sum += x.at(row * e + i) * x.at(row * e + i);
    const Scalar rstd = rsqrt(sum / count + eps);
    for (std::int64_t i = 0; i < e; ++i) call.results[0].set(row * e + i, x.at(row * e + i) * rstd * scale.at(i));
    call.results[1].set(row, rstd);
  }
}

void reference_grad(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &scale = call.operands[1], &rstds = call.operands[2], &g = call.operands[3];
  const std::int64_t e = ops::last_size(x.type), rows = ops::rows_of(x.type);
  const bool with_scale = !call.attrs.flag("input_only");
  std::vector<Scalar> n(static_cast<std::size_t>(e)), h(n), dscale(n);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Scalar rstd = rstds.at(row);
    Scalar sum(0);
    for (std::size_t i = 0; i < n.size(); ++i) {
      const std::int64_t at = row * e + static_cast<std::int64_t>(i);
      n[i] = x.at(at) * rstd;
      h[i] = g.at(at) * scale.at(static_cast<std::int64_t>(i));
      sum += h[i] * n[i];
      if (with_scale) dscale[i] += g.at(at) * n[i];
    }
    const Scalar mean = sum / Scalar(static_cast<double>(e));
    for (std::size_t i = 0; i < n.size(); ++i) {
      call.results[0].set(row * e + static_cast<std::int64_t>(i), rstd * (h[i] - n[i] * mean));
    }
  }
  for (std::size_t i = 0; with_scale && i < n.size(); ++i) call.results[1].set(static_cast<std::int64_t>(i), dscale[i]);
}

OpDef make_rms_norm() {
  OpDef op;
  op.name = "rms_norm";
  op.summary = "rstd = 1 / sqrt(mean(x^2) + eps), y = x rstd scale over the last dim; arXiv:1910.07467";
  op.signature = "(x: float[..., e], scale: float[e]) -> (y: like x, rstd: f32[...])";
  op.attrs = {{"eps", "double", "added to the mean square"}};
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::mixed;
  return op;
}

OpDef make_rms_norm_grad() {
  OpDef op;
  op.name = "rms_norm_grad";
  op.summary = "dx = rstd (h - n mean(h n)) with n = x rstd, h = g scale; dscale = sum over rows of g n";
  op.signature =
      "(x: float[..., e], scale: float[e], rstd: f32[...], g: like x) -> (dx: like x, dscale: like scale unless "
      "input_only)";
  op.attrs = {{"input_only", "bool", "dx alone, for a scale that is not trained", false}};
  op.infer = infer_grad;
  op.work = work_grad;
  op.sharding = sharding_grad;
  op.reference = reference_grad;
  op.precision = PrecisionRule::f32;
  return op;
}

}  // namespace

std::vector<OpDef> ops::rms_norm_ops() { return {make_rms_norm(), make_rms_norm_grad()}; }

RmsNorm rms_norm(Value x, Value scale, double eps) {
  const Value operands[] = {x, scale};
  const std::vector<Value> results = x.graph->apply("rms_norm", operands, {{"eps", eps}});
  return {results[0], results[1]};
}

RmsNormGrad rms_norm_grad(Value x, Value scale, Value rstd, Value g) {
  const Value operands[] = {x, scale, rstd, g};
  const std::vector<Value> results = x.graph->apply("rms_norm_grad", operands);
  return {results[0], results[1]};
}

}  // namespace systole
