// adamw and sgd (describe/ops/adamw.cc, sgd.cc), in f32 (f64 for an f64 parameter). Where `apply` is false the old
// values are selected after rounding, so they keep their bits. 1 - β^count is -expm1(count ln β) with ln β computed in
// f64, because the difference from a power near 1 would have no digits left.

#include <cmath>

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

Ssa times(Builder& b, const Ssa& x, const Ssa& y) { return b.binary("multiply", x, y); }
Ssa plus(Builder& b, const Ssa& x, const Ssa& y) { return b.binary("add", x, y); }

// `fresh`, rounded to the old value's type, if the scalar `apply` is true; else `old`.
Ssa applied(Builder& b, const Ssa& apply, const Ssa& fresh, const Ssa& old) {
  return b.select(b.splat(apply, old.type), b.convert(fresh, old.type.dtype), old);
}

// 1 - beta^count, as a scalar.
Ssa unbias(Builder& b, double beta, const Ssa& count) {
  if (beta == 0) return fill_like(b, count, 1);
  return b.unary("negate", b.unary("exponential_minus_one", scaled(b, count, std::log(beta))));
}

// beta old + (1 - beta) fresh.
Ssa moment(Builder& b, double beta, const Ssa& old, const Ssa& fresh) {
  return plus(b, scaled(b, old, beta), scaled(b, fresh, 1 - beta));
}

std::vector<Ssa> adamw(Builder& b, const NodeCall& call) {
  const Attrs& attrs = call.node.attrs;
  const double beta1 = attrs.get_double("beta1"), beta2 = attrs.get_double("beta2");
  const Ssa &old_p = call.operands[0], &g = call.operands[1], &old_m = call.operands[2], &old_v = call.operands[3];
  const Ssa &scale = call.operands[4], &rate = call.operands[5], &apply = call.operands[7];
  const Ssa count = b.convert(call.operands[6], scale.type.dtype);
  const auto in = [&](const Ssa& x) { return b.convert(x, scale.type.dtype); };
  const auto all = [&](const Ssa& scalar) { return b.splat(scalar, old_p.type); };

  const Ssa p = in(old_p), grad = times(b, in(g), all(scale));
  const Ssa m = moment(b, beta1, in(old_m), grad);
  const Ssa v = plus(b, scaled(b, in(old_v), beta2), times(b, scaled(b, grad, 1 - beta2), grad));
  const Ssa root = b.unary("sqrt", b.binary("divide", v, all(unbias(b, beta2, count))));
  const Ssa divisor = plus(b, root, fill_like(b, root, attrs.get_double("eps")));
  Ssa direction = b.binary("divide", b.binary("divide", m, all(unbias(b, beta1, count))), divisor);
  direction = plus(b, direction, scaled(b, p, attrs.get_double("weight_decay")));
  const Ssa moved = b.binary("subtract", p, times(b, all(rate), direction));
  return {applied(b, apply, moved, old_p), applied(b, apply, m, old_m), applied(b, apply, v, old_v)};
}

std::vector<Ssa> sgd(Builder& b, const NodeCall& call) {
  const double momentum = call.node.attrs.get_double("momentum"), decay = call.node.attrs.get_double("weight_decay");
  const std::size_t first = momentum != 0 ? 3 : 2;
  const Ssa &old_p = call.operands[0], &scale = call.operands[first], &rate = call.operands[first + 1];
  const Ssa& apply = call.operands[first + 2];
  const auto in = [&](const Ssa& x) { return b.convert(x, scale.type.dtype); };
  const auto all = [&](const Ssa& scalar) { return b.splat(scalar, old_p.type); };

  const Ssa p = in(old_p);
  Ssa step = times(b, in(call.operands[1]), all(scale));
  if (decay != 0) step = plus(b, step, scaled(b, p, decay));
  if (momentum != 0) step = plus(b, scaled(b, in(call.operands[2]), momentum), step);
  const Ssa moved = b.binary("subtract", p, times(b, all(rate), step));
  std::vector<Ssa> results{applied(b, apply, moved, old_p)};
  if (momentum != 0) results.push_back(applied(b, apply, step, call.operands[2]));
  return results;
}

}  // namespace

std::vector<OpLowering> optimizer_lowerings() { return {{"adamw", adamw}, {"sgd", sgd}}; }

}  // namespace systole::stablehlo
