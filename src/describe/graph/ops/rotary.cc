// rotary position embedding (Su et al., arXiv:2104.09864), halves rotated as GPT-NeoX and Llama do: with
// φ = position theta^(-2i/d), the pair (x_i, x_{i + d/2}) becomes
//
//   y_i = x_i cos φ - x_{i + d/2} sin φ          y_{i + d/2} = x_{i + d/2} cos φ + x_i sin φ
//
// `inverse` turns by -φ, which is also the gradient.
//
// Constraints: C1 x[b, t, h, d] of a float type. C2 d even. C3 positions i32[b, t]. C4 theta > 0.
// Work: a power per frequency (d/2); per token and frequency an angle, a cosine and a sine; per pair of x 6.

#include <vector>

#include "describe/graph/op.h"
#include "describe/graph/ops/list.h"
#include "describe/graph/ops/ops.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 2 || call.operand(0).ndim() != 4 || !is_float(call.operand(0).dtype)) {
    constraint("rotary_c1", "rotary takes x[b, t, h, d] of a float type, and positions");
  }
  const Type &x = call.operand(0), &positions = call.operand(1);
  if (x.size(3) % 2 != 0) constraint("rotary_c2", "the last dim of {} is odd", to_string(x));
  if (!(positions == Type(DType::i32, {x.size(0), x.size(1)}))) {
    constraint("rotary_c3", "positions {} of x {}", to_string(positions), to_string(x));
  }
  if (!(call.attrs.get_double("theta") > 0)) constraint("rotary_c4", "theta is {}", call.attrs.get_double("theta"));
  return {x};
}

Gradients gradient(GradientCall& call) {
  const double theta = call.attrs().get_double("theta");
  return {rotary(*call.cotangent(0), call.operand(1), theta, !call.attrs().flag("inverse")), std::nullopt};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const Type& x = call.operand(0);
  const std::int64_t tokens = x.size(0) * x.size(1), frequencies = x.size(3) / 2;
  work.flops = tokens * frequencies * (1 + 6 * x.size(2));
  work.transcendentals = frequencies * (1 + 2 * tokens);
  return work;
}

ShardingRule sharding(const OpCall&) { return sharding_rule("bthd,bt->bthd", "", "d"); }

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &positions = call.operands[1], &y = call.results[0];
  const std::int64_t tokens = x.type.size(0) * x.type.size(1), heads = x.type.size(2), d = x.type.size(3);
  const Scalar theta(call.attrs.get_double("theta"));
  const std::int64_t direction = call.attrs.flag("inverse") ? -1 : 1;
  std::vector<Scalar> frequency;
  for (std::int64_t i = 0; i < d / 2; ++i) {
    frequency.push_back(pow(theta, Scalar(static_cast<double>(-2 * i) / static_cast<double>(d))));
  }
  for (std::int64_t token = 0; token < tokens; ++token) {
    const Scalar position(static_cast<double>(direction * positions.integer(token)));
    for (std::int64_t i = 0; i < d / 2; ++i) {
      const Scalar angle = position * frequency[static_cast<std::size_t>(i)];
      const Scalar c = cos(angle), s = sin(angle);
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t low = (token * heads + head) * d + i, high = low + d / 2;
        const Scalar a = x.at(low), b = x.at(high);
        y.set(low, a * c - b * s);
        y.set(high, b * c + a * s);
      }
    }
  }
}

}  // namespace

OpDef ops::rotary_op() {
  OpDef op;
  op.name = "rotary";
  op.summary = "(x_i, x_{i+d/2}) turned by position theta^(-2i/d); arXiv:2104.09864";
  op.signature = "(x: float[b, t, h, d], positions: i32[b, t]) -> (y: like x)";
  op.attrs = {{"theta", "double", "base of the frequencies"}, {"inverse", "bool", "turns back", false}};
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.in_place = {{0, 0}};
  return op;
}

Value rotary(Value x, Value positions, double theta, bool inverse) {
  const Value operands[] = {x, positions};
  return x.graph->apply("rotary", operands, {{"theta", theta}, {"inverse", inverse}})[0];
}

}  // namespace systole
