// layer_norm over the last dim e, and its gradient (Ba, Kiros and Hinton, arXiv:1607.06450).
//
//   mean = mean(x)      rstd = 1 / sqrt(mean((x - mean)²) + eps)      y = (x - mean) rstd scale + bias
//   with n = (x - mean) rstd and h = g scale:   dx = rstd (h - mean(h) - n mean(h n))
//   dscale = Σ over rows of g n, dbias = Σ over rows of g
//
// The variance uses a second pass around the mean, so that a large mean loses no digits. `input_only` omits dscale and
// dbias: a frozen norm needs no gradient.
//
// Constraints: C1 operand counts; x has a float type and at least one dim. C2 scale[e] and bias[e] have one float type.
// C3 eps > 0. C4 mean and rstd of the gradient are f32 (f64 for f64) of the rows' shape, g has x's type.
// Work: forward, 7 per element, 3 and a root per row; gradient, 13 per element (10 with input_only) and 2 per row.

#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

void check_vector(const OpCall& call, const Type& vector) {
  const Type& x = call.operand(0);
  if (!is_float(vector.dtype) || vector.shape != Shape{ops::last_size(x)} || vector.dtype != call.operand(1).dtype) {
    constraint("layer_norm_c2", "scale or bias {} of x {}", to_string(vector), to_string(x));
  }
}

// Checks x and returns the type of the rows.
Type check_x(const OpCall& call, int num_operands) {
  if (call.num_operands() != num_operands || call.operand(0).ndim() < 1 || !is_float(call.operand(0).dtype)) {
    constraint("layer_norm_c1", "{} takes x of a float type with at least one dim and {} more operands", call.op.name,
               num_operands - 1);
  }
  return ops::without_last(call.operand(0), ops::statistic_dtype(call.operand(0).dtype));
}

std::vector<Type> infer(const OpCall& call) {
  const Type row = check_x(call, 3);
  check_vector(call, call.operand(1));
  check_vector(call, call.operand(2));
  if (!(call.attrs.get_double("eps") > 0)) constraint("layer_norm_c3", "eps is {}", call.attrs.get_double("eps"));
  return {call.operand(0), row, row};
}

std::vector<Type> infer_grad(const OpCall& call) {
  const Type row = check_x(call, 5);
  check_vector(call, call.operand(1));
  if (!(call.operand(2) == row) || !(call.operand(3) == row) || !(call.operand(4) == call.operand(0))) {
    constraint("layer_norm_c4", "mean {}, rstd {} and g {} of x {}", to_string(call.operand(2)),
               to_string(call.operand(3)), to_string(call.operand(4)), to_string(call.operand(0)));
  }
  if (call.attrs.flag("input_only")) return {call.operand(0)};
  return {call.operand(0), call.operand(1), call.operand(1)};
}

Gradients gradient(GradientCall& call) {
  if (call.cotangent(1) || call.cotangent(2)) {
    fail(error(ErrorKind::unsupported, "no gradient flows through the mean and rstd of layer_norm"));
  }
  const Value x = call.operand(0), scale = call.operand(1), mean = call.result(1), rstd = call.result(2);
  const Value g = *call.cotangent(0);
  if (!call.needs(1) && !call.needs(2)) {
    const Value operands[] = {x, scale, mean, rstd, g};
    const Value dx = call.graph().apply("layer_norm_grad", operands, {{"input_only", true}})[0];
    return {dx, std::nullopt, std::nullopt};
  }
  const LayerNormGrad d = layer_norm_grad(x, scale, mean, rstd, g);
  return {d.dx, d.dscale, d.dbias};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const std::int64_t rows = ops::rows_of(call.operand(0)), e = ops::last_size(call.operand(0));
  work.flops = rows * (7 * e + 3);
  work.transcendentals = rows;
  return work;
}

Work work_grad(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const std::int64_t rows = ops::rows_of(call.operand(0)), e = ops::last_size(call.operand(0));
  work.flops = rows * ((call.attrs.flag("input_only") ? 10 : 13) * e + 2);
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  return sharding_rule(rows + "z,z,z->" + rows + "z," + rows + "," + rows, "", "z");
}

// Sharded rows leave dscale and dbias partial sums; dx is sharded along the rows.
ShardingRule sharding_grad(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  const std::string notation = rows + "z,z," + rows + "," + rows + "," + rows + "z->" + rows + "z";
  if (call.attrs.flag("input_only")) return sharding_rule(notation, "", "z");
  return sharding_rule(notation + ",z,z", rows, "z");
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &scale = call.operands[1], &bias = call.operands[2];
  const std::int64_t e = ops::last_size(x.type), rows = ops::rows_of(x.type);
  const Scalar eps(call.attrs.get_double("eps")), count(static_cast<double>(e));
  std::vector<Scalar> centred(static_cast<std::size_t>(e));
  for (std::int64_t row = 0; row < rows; ++row) {
    Scalar sum(0), squares(0);
    for (std::int64_t i = 0; i < e; ++i) sum += x.at(row * e + i);
    const Scalar mean = sum / count;
    for (std::int64_t i = 0; i < e; ++i) {
      const Scalar d = centred[static_cast<std::size_t>(i)] = x.at(row * e + i) - mean;
      squares += d * d;
    }
    const Scalar rstd = rsqrt(squares / count + eps);
    for (std::int64_t i = 0; i < e; ++i) {
      call.results[0].set(row * e + i, centred[static_cast<std::size_t>(i)] * rstd * scale.at(i) + bias.at(i));
    }
    call.results[1].set(row, mean);
    call.results[2].set(row, rstd);
  }
}

void reference_grad(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &scale = call.operands[1], &g = call.operands[4];
  const std::int64_t e = ops::last_size(x.type), rows = ops::rows_of(x.type);
  const bool with_vectors = !call.attrs.flag("input_only");
  const Scalar count(static_cast<double>(e));
  std::vector<Scalar> n(static_cast<std::size_t>(e)), h(n), dscale(n), dbias(n);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Scalar mean = call.operands[2].at(row), rstd = call.operands[3].at(row);
    Scalar sum_h(0), sum_hn(0);
    for (std::size_t i = 0; i < n.size(); ++i) {
      const std::int64_t at = row * e + static_cast<std::int64_t>(i);
      n[i] = (x.at(at) - mean) * rstd;
      h[i] = g.at(at) * scale.at(static_cast<std::int64_t>(i));
      sum_h += h[i];
      sum_hn += h[i] * n[i];
      if (!with_vectors) continue;
      dscale[i] += g.at(at) * n[i];
      dbias[i] += g.at(at);
    }
    const Scalar mean_h = sum_h / count, mean_hn = sum_hn / count;
    for (std::size_t i = 0; i < n.size(); ++i) {
      call.results[0].set(row * e + static_cast<std::int64_t>(i), rstd * (h[i] - mean_h - n[i] * mean_hn));
    }
  }
  for (std::size_t i = 0; with_vectors && i < n.size(); ++i) {
    call.results[1].set(static_cast<std::int64_t>(i), dscale[i]);
    call.results[2].set(static_cast<std::int64_t>(i), dbias[i]);
  }
}

OpDef make_layer_norm() {
  OpDef op;
  op.name = "layer_norm";
  op.summary = "y = (x - mean) rstd scale + bias over the last dim, rstd = 1 / sqrt(variance + eps); arXiv:1607.06450";
  op.signature = "(x: float[..., e], scale: float[e], bias: like scale) -> (y: like x, mean: f32[...], rstd: f32[...])";
  op.attrs = {{"eps", "double", "added to the variance"}};
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::mixed;
  return op;
}

OpDef make_layer_norm_grad() {
  OpDef op;
  op.name = "layer_norm_grad";
  op.summary =
      "dx = rstd (h - mean(h) - n mean(h n)) with n = (x - mean) rstd, h = g scale; dscale, dbias sums over rows";
  op.signature =
      "(x: float[..., e], scale: float[e], mean: f32[...], rstd: f32[...], g: like x) -> (dx: like x, dscale: like "
      "scale, dbias: like scale; dx alone if input_only)";
  op.attrs = {{"input_only", "bool", "dx alone, for a scale and bias that are not trained", false}};
  op.infer = infer_grad;
  op.work = work_grad;
  op.sharding = sharding_grad;
  op.reference = reference_grad;
  op.precision = PrecisionRule::f32;
  return op;
}

}  // namespace

std::vector<OpDef> ops::layer_norm_ops() { return {make_layer_norm(), make_layer_norm_grad()}; }

LayerNorm layer_norm(Value x, Value scale, Value bias, double eps) {
  const Value operands[] = {x, scale, bias};
  const std::vector<Value> results = x.graph->apply("layer_norm", operands, {{"eps", eps}});
  return {results[0], results[1], results[2]};
}

LayerNormGrad layer_norm_grad(Value x, Value scale, Value mean, Value rstd, Value g) {
  const Value operands[] = {x, scale, mean, rstd, g};
  const std::vector<Value> results = x.graph->apply("layer_norm_grad", operands);
  return {results[0], results[1], results[2]};
}

}  // namespace systole
