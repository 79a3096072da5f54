// adamw: Adam (Kingma and Ba, arXiv:1412.6980) with decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101).
//
//   g' = g scale      m' = β1 m + (1 - β1) g'      v' = β2 v + (1 - β2) g'²
//   p' = p - rate (m̂ / (sqrt v̂ + eps) + decay p),  m̂ = m' / (1 - β1^count), v̂ = v' / (1 - β2^count)
//
// `scale` is the factor of clipping and of the division by the label count. `count` is the number of updates, this one
// included. If `apply` is false, parameter and state keep their bits.
//
// Operands: parameter, g, m, v, scale, rate, count, apply. Results: parameter, m, v, which overwrite the old in place.
// Constraints: C1 eight operands; parameter, g, m, v have float types and one shape. C2 scale and rate are f32[] (f64[]
// for an f64 parameter), count i32[], apply bool[]. C3 0 ≤ β < 1, eps > 0, decay ≥ 0.
// Work: 16 FLOPs and a root per element; 2 powers and 2 subtractions per call.

#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 8) constraint("adamw_c1", "adamw takes 8 operands, got {}", call.num_operands());
  const Type& parameter = call.operand(0);
  for (int i = 0; i < 4; ++i) {
    if (!is_float(call.operand(i).dtype) || call.operand(i).shape != parameter.shape) {
      constraint("adamw_c1", "operand {} is {}, the parameter {}", i, to_string(call.operand(i)), to_string(parameter));
    }
  }
  const Type scalar(ops::statistic_dtype(parameter.dtype), {});
  const Type expected[] = {scalar, scalar, Type(DType::i32, {}), Type(DType::boolean, {})};
  for (int i = 0; i < 4; ++i) {
    if (!(call.operand(4 + i) == expected[i])) {
      constraint("adamw_c2", "operand {} is {}, not {}", 4 + i, to_string(call.operand(4 + i)), to_string(expected[i]));
    }
  }
  const double beta1 = call.attrs.get_double("beta1"), beta2 = call.attrs.get_double("beta2");
  const double eps = call.attrs.get_double("eps"), decay = call.attrs.get_double("weight_decay");
  if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1 && eps > 0 && decay >= 0)) {
    constraint("adamw_c3", "beta1 {}, beta2 {}, eps {}, weight_decay {}", beta1, beta2, eps, decay);
  }
  return {parameter, call.operand(2), call.operand(3)};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const std::int64_t n = call.operand(0).num_elements();
  work.flops = 16 * n + 2;
  work.transcendentals = n + 2;
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string dims = ops::letters(call.operand(0).ndim());
  return sharding_rule(dims + "," + dims + "," + dims + "," + dims + ",,,,->" + dims + "," + dims + "," + dims);
}

void reference(const ReferenceCall& call) {
  const TensorView &parameter = call.operands[0], &g = call.operands[1], &m = call.operands[2], &v = call.operands[3];
  const Scalar scale = call.operands[4].at(0), rate = call.operands[5].at(0), count = call.operands[6].at(0);
  const bool apply = call.operands[7].integer(0) != 0;
  const double b1 = call.attrs.get_double("beta1"), b2 = call.attrs.get_double("beta2");
  const Scalar beta1(b1), rest1(1 - b1), beta2(b2), rest2(1 - b2);
  const Scalar eps(call.attrs.get_double("eps")), decay(call.attrs.get_double("weight_decay"));
  const Scalar unbias1 = Scalar(1) - pow(beta1, count), unbias2 = Scalar(1) - pow(beta2, count);
  const std::int64_t n = parameter.type.num_elements();
  for (std::int64_t i = 0; i < n; ++i) {
    const Scalar p = parameter.at(i), scaled = g.at(i) * scale;
    const Scalar m_new = beta1 * m.at(i) + rest1 * scaled;
    const Scalar v_new = beta2 * v.at(i) + rest2 * scaled * scaled;
    const Scalar direction = m_new / unbias1 / (sqrt(v_new / unbias2) + eps) + decay * p;
    const Scalar p_new = p - rate * direction;
    call.results[0].set(i, apply ? p_new : p);
    call.results[1].set(i, apply ? m_new : m.at(i));
    call.results[2].set(i, apply ? v_new : v.at(i));
  }
}

}  // namespace

OpDef ops::adamw_op() {
  OpDef op;
  op.name = "adamw";
  op.summary = "p - rate (m^ / (sqrt v^ + eps) + weight_decay p), moments of g scale; arXiv:1711.05101";
  op.signature =
      "(parameter: float[...], g: float[...], m: float[...], v: float[...], scale: f32[], rate: f32[], count: i32[], "
      "apply: bool[]) -> (parameter, m, v: like the old)";
  op.attrs = {{"beta1", "double", "decay of the first moment"},
              {"beta2", "double", "decay of the second moment"},
              {"eps", "double", "added to the root of the second moment"},
              {"weight_decay", "double", "decoupled: of the parameter itself"}};
  op.infer = infer;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  op.in_place = {{0, 0}, {1, 2}, {2, 3}};
  return op;
}

Adamw adamw(Value parameter, Value g, Value m, Value v, Value scale, Value rate, Value count, Value apply,
            const AdamwOptions& options) {
  const Value operands[] = {parameter, g, m, v, scale, rate, count, apply};
  const std::vector<Value> results = parameter.graph->apply("adamw", operands,
                                                            {{"beta1", options.beta1},
                                                             {"beta2", options.beta2},
                                                             {"eps", options.eps},
                                                             {"weight_decay", options.weight_decay}});
  return {results[0], results[1], results[2]};
}

}  // namespace systole
