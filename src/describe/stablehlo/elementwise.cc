// Elementwise ops, with the formulas of describe/ops/elementwise.cc. Formulas of several steps are computed in f32 (f64
// for f64) and rounded once, as in the other backends.

#include <array>

#include "describe/ir/op.h"
#include "describe/stablehlo/arithmetic.h"
#include "describe/stablehlo/lower_op.h"
#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794;
constexpr double kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

using Results = std::vector<Ssa>;

// --- ops that StableHLO has itself

template <const char* kOp>
Results exact_unary(Builder& b, const NodeCall& call) {
  return {b.unary(kOp, call.operands[0])};
}

template <const char* kOp>
Results exact_binary(Builder& b, const NodeCall& call) {
  return {b.binary(kOp, call.operands[0], call.operands[1])};
}

constexpr char kNegate[] = "negate", kAdd[] = "add", kSubtract[] = "subtract", kMultiply[] = "multiply",
               kDivide[] = "divide", kMaximum[] = "maximum", kMinimum[] = "minimum", kAnd[] = "and";

// --- formulas

Term wide_term(Builder& b, const Ssa& x) { return {b, b.convert(x, wide(x.type.dtype))}; }

template <Term (*kFormula)(const Term&)>
Results formula(Builder& b, const NodeCall& call) {
  const Ssa& x = call.operands[0];
  return {b.convert(kFormula(wide_term(b, x)).value(), x.type.dtype)};
}

template <Term (*kFormula)(const Term&, const Term&)>
Results formula(Builder& b, const NodeCall& call) {
  const Ssa& x = call.operands[0];
  return {b.convert(kFormula(wide_term(b, x), wide_term(b, call.operands[1])).value(), x.type.dtype)};
}

Term log_of(const Term& x) { return x.of("log"); }
Term rsqrt_of(const Term& x) { return x.of("rsqrt"); }
Term sqrt_of(const Term& x) { return x.of("sqrt"); }
Term gelu_of(const Term& x) { return 0.5 * x * (1 + erf(kSqrtHalf * x)); }
Term silu_of(const Term& x) { return x * logistic(x); }
Term relu_of(const Term& x) { return x.with("maximum", x.number(0)); }

Term gelu_tanh_of(const Term& x) { return 0.5 * x * (1 + tanh(kSqrt2OverPi * (x + kGeluCubic * (x * x * x)))); }

Term gelu_grad_of(const Term& x, const Term& g) {
  const Term cdf = 0.5 * (1 + erf(kSqrtHalf * x)), pdf = kInvSqrt2Pi * exp(-0.5 * (x * x));
  return g * (cdf + x * pdf);
}

Term gelu_tanh_grad_of(const Term& x, const Term& g) {
  const Term x2 = x * x, t = tanh(kSqrt2OverPi * (x + kGeluCubic * (x2 * x)));
  const Term slope = kSqrt2OverPi + 3 * kGeluCubic * kSqrt2OverPi * x2;
  return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope);
}

Term silu_grad_of(const Term& x, const Term& g) {
  const Term y = logistic(x);
  return g * (y * (1 + x * (1 - y)));
}

// --- choices and conversions

Results lower_compare(Builder& b, const NodeCall& call) {
  const std::string& kind = call.node.attrs.get_string("kind");
  std::string direction;
  for (const char c : kind) direction += static_cast<char>(c - 'a' + 'A');
  return {b.compare(direction, call.operands[0], call.operands[1])};
}

Results lower_select(Builder& b, const NodeCall& call) {
  return {b.select(call.operands[0], call.operands[1], call.operands[2])};
}

Results lower_is_finite(Builder& b, const NodeCall& call) { return {b.is_finite(call.operands[0])}; }

Results lower_cast(Builder& b, const NodeCall& call) { return {cast_to(b, call.operands[0], call.results[0].dtype)}; }

// The range of an integer type, as bits.
struct Range {
  std::int64_t low;
  std::uint64_t high;
};
Range range_of(DType dtype) {
  const auto bits = static_cast<int>(8 * size_of(dtype));
  const bool is_signed = dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
  if (!is_signed) return {0, all};
  return {-static_cast<std::int64_t>(all / 2) - 1, all / 2};
}

Ssa whole_from_real(Builder& b, const Ssa& x, DType dtype) {
  const Range range = range_of(dtype);
  const Type to = x.type.with(dtype);
  const auto real = [&](double value) { return b.constant(x.type, value); };
  // As a real, `high` may round up to one more than the maximum; hence GE.
  const Ssa above = b.compare("GE", x, real(static_cast<double>(range.high)));
  const Ssa below = b.compare("LE", x, real(static_cast<double>(range.low)));
  Ssa y = b.convert(x, dtype);
  y = b.select(above, b.integer(to, range.high), y);
  y = b.select(below, b.integer(to, static_cast<std::uint64_t>(range.low)), y);
  return b.select(b.compare("NE", x, x), b.integer(to, 0), y);
}

Ssa whole_from_whole(Builder& b, const Ssa& x, DType dtype) {
  const Range from = range_of(x.type.dtype), to = range_of(dtype);
  Ssa y = x;
  if (from.low < to.low) y = b.binary("maximum", y, b.integer(x.type, static_cast<std::uint64_t>(to.low)));
  if (from.high > to.high) y = b.binary("minimum", y, b.integer(x.type, to.high));
  return b.convert(y, dtype);
}

}  // namespace

Ssa cast_to(Builder& b, const Ssa& x, DType dtype) {
  const DType from = x.type.dtype;
  if (from == dtype) return x;
  if (dtype == DType::boolean) return b.compare("NE", x, b.constant(x.type, 0));
  if (is_integer(dtype) && is_float(from)) return whole_from_real(b, x, dtype);
  if (is_integer(dtype) && is_integer(from)) return whole_from_whole(b, x, dtype);
  return b.convert(x, dtype);
}

std::vector<OpLowering> elementwise_lowerings() {
  return {{"neg", exact_unary<kNegate>},
          {"exp", formula<exp>},
          {"log", formula<log_of>},
          {"tanh", formula<tanh>},
          {"sigmoid", formula<logistic>},
          {"gelu", formula<gelu_of>},
          {"gelu_tanh", formula<gelu_tanh_of>},
          {"silu", formula<silu_of>},
          {"relu", formula<relu_of>},
          {"rsqrt", formula<rsqrt_of>},
          {"sqrt", formula<sqrt_of>},
          {"is_finite", lower_is_finite},
          {"add", exact_binary<kAdd>},
          {"sub", exact_binary<kSubtract>},
          {"mul", exact_binary<kMultiply>},
          {"div", exact_binary<kDivide>},
          {"max", exact_binary<kMaximum>},
          {"min", exact_binary<kMinimum>},
          {"compare", lower_compare},
          {"logical_and", exact_binary<kAnd>},
          {"select", lower_select},
          {"gelu_grad", formula<gelu_grad_of>},
          {"gelu_tanh_grad", formula<gelu_tanh_grad_of>},
          {"silu_grad", formula<silu_grad_of>},
          {"cast", lower_cast}};
}

}  // namespace systole::stablehlo
