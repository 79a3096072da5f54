// sgd with momentum (Sutskever et al., ICML 2013, in PyTorch's form: the velocity is not scaled by the rate).
//
//   g' = g scale + decay p      m' = momentum m + g'      p' = p - rate m'        (without momentum p - rate g')
//
// If `apply` is false, parameter and state keep their bits.
//
// Operands: parameter, g, m (with momentum only), scale, rate, apply. Results: parameter, m (with momentum only), which
// overwrite the old in place.
// Constraints: C1 operand count as momentum says; parameter, g, m have float types and one shape. C2 scale and rate are
// f32[] (f64[] for an f64 parameter), apply bool[]. C3 0 ≤ momentum < 1, decay ≥ 0.
// Work: 3 per element, 2 more with weight decay, 2 more with momentum.

#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

bool has_momentum(const Attrs& attrs) { return attrs.get_double("momentum") != 0; }

std::vector<Type> infer(const OpCall& call) {
  const double momentum = call.attrs.get_double("momentum"), decay = call.attrs.get_double("weight_decay");
  const int tensors = has_momentum(call.attrs) ? 3 : 2;
  if (call.num_operands() != tensors + 3) {
    constraint("sgd_c1", "sgd with momentum {} takes {} operands, got {}", momentum, tensors + 3, call.num_operands());
  }
  const Type& parameter = call.operand(0);
  for (int i = 0; i < tensors; ++i) {
    if (!is_float(call.operand(i).dtype) || call.operand(i).shape != parameter.shape) {
      constraint("sgd_c1", "operand {} is {}, the parameter {}", i, to_string(call.operand(i)), to_string(parameter));
    }
  }
  const Type scalar(ops::statistic_dtype(parameter.dtype), {});
  const Type expected[] = {scalar, scalar, Type(DType::boolean, {})};
  for (int i = 0; i < 3; ++i) {
    if (!(call.operand(tensors + i) == expected[i])) {
      constraint("sgd_c2", "operand {} is {}, not {}", tensors + i, to_string(call.operand(tensors + i)),
                 to_string(expected[i]));
    }
  }
  if (!(momentum >= 0 && momentum < 1 && decay >= 0)) {
    constraint("sgd_c3", "momentum {}, weight_decay {}", momentum, decay);
  }
  if (tensors == 3) return {parameter, call.operand(2)};
  return {parameter};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const int per_element = 3 + (has_momentum(call.attrs) ? 2 : 0) + (call.attrs.get_double("weight_decay") != 0 ? 2 : 0);
  work.flops = per_element * call.operand(0).num_elements();
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string dims = ops::letters(call.operand(0).ndim());
  if (has_momentum(call.attrs)) return sharding_rule(dims + "," + dims + "," + dims + ",,,->" + dims + "," + dims);
  return sharding_rule(dims + "," + dims + ",,,->" + dims);
}

void reference(const ReferenceCall& call) {
  const bool with_m = has_momentum(call.attrs);
  const std::size_t first = with_m ? 3 : 2;
  const Scalar scale = call.operands[first].at(0), rate = call.operands[first + 1].at(0);
  const bool apply = call.operands[first + 2].integer(0) != 0;
  const Scalar momentum(call.attrs.get_double("momentum")), decay(call.attrs.get_double("weight_decay"));
  const std::int64_t n = call.operands[0].type.num_elements();
  for (std::int64_t i = 0; i < n; ++i) {
    const Scalar p = call.operands[0].at(i);
    Scalar step = call.operands[1].at(i) * scale;
    if (!(decay == Scalar(0))) step += decay * p;
    if (with_m) {
      const Scalar m = call.operands[2].at(i);
      step = momentum * m + step;
      call.results[1].set(i, apply ? step : m);
    }
    const Scalar p_new = p - rate * step;
    call.results[0].set(i, apply ? p_new : p);
  }
}

}  // namespace

OpDef ops::sgd_op() {
  OpDef op;
  op.name = "sgd";
  op.summary = "m' = momentum m + g scale + weight_decay p, p' = p - rate m'; Sutskever et al., ICML 2013";
  op.signature =
      "(parameter: float[...], g: float[...], m: float[...] with momentum, scale: f32[], rate: f32[], apply: bool[]) "
      "-> "
      "(parameter: like the old, m: like the old with momentum)";
  op.attrs = {{"momentum", "double", "0: no state"},
              {"weight_decay", "double", "added to the gradient, of the parameter"}};
  op.infer = infer;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  op.in_place = {{0, 0}, {1, 2}};
  return op;
}

Sgd sgd(Value parameter, Value g, std::optional<Value> m, Value scale, Value rate, Value apply,
        const SgdOptions& options) {
  std::vector<Value> operands{parameter, g};
  if (m) operands.push_back(*m);
  operands.insert(operands.end(), {scale, rate, apply});
  const std::vector<Value> results =
      parameter.graph->apply("sgd", operands, {{"momentum", options.momentum}, {"weight_decay", options.weight_decay}});
  return {results[0], m ? std::optional(results[1]) : std::nullopt};
}

}  // namespace systole
