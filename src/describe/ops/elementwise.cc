// Elementwise ops: result element i is a function of operand elements i. One row per op in the tables below.
//
// Formulas. gelu(x) = x Φ(x) = x (1 + erf(x/√2)) / 2; gelu_tanh(x) = x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2
// (Hendrycks and Gimpel, arXiv:1606.08415); silu(x) = x / (1 + e^-x). Their `_grad` is g times the derivative at x.
//
// Constraints: C1 all operands have one type (pred of select: bool of that shape). C2 float ops take float types;
// add … min take integers too. C3 compare's kind is lt, le, gt, ge, eq or ne.
// Work: the operations that the lambda counts for one element, times the elements; a test compares the two.

#include <array>
#include <cmath>
#include <memory>

#include "describe/ir/op.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794;
constexpr double kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

Scalar s(double value) { return Scalar(value); }

Scalar sigmoid_of(Scalar x) { return s(1) / (s(1) + exp(-x)); }

Scalar gelu_grad_of(Scalar x, Scalar g) {
  const Scalar cdf = s(0.5) * (s(1) + erf(x * s(kSqrtHalf)));
  const Scalar pdf = s(kInvSqrt2Pi) * exp(s(-0.5) * (x * x));
  return g * (cdf + x * pdf);
}

Scalar gelu_tanh_of(Scalar x) {
  const Scalar inner = s(kSqrt2OverPi) * (x + s(kGeluCubic) * (x * x * x));
  return s(0.5) * x * (s(1) + tanh(inner));
}

Scalar gelu_tanh_grad_of(Scalar x, Scalar g) {
  const Scalar x2 = x * x;
  const Scalar t = tanh(s(kSqrt2OverPi) * (x + s(kGeluCubic) * (x2 * x)));
  const Scalar slope = s(kSqrt2OverPi) + s(3 * kGeluCubic * kSqrt2OverPi) * x2;
  return g * (s(0.5) * (s(1) + t) + s(0.5) * x * (s(1) - t * t) * slope);
}

Scalar silu_grad_of(Scalar x, Scalar g) {
  const Scalar y = sigmoid_of(x);
  return g * (y * (s(1) + x * (s(1) - y)));
}

// Which operand types an op takes.
enum class Takes { floats, numbers, bools };

std::vector<Type> infer_elementwise(const OpCall& call, std::size_t arity, Takes takes) {
  if (call.operands.size() != arity)
    constraint("elementwise_c1", "{} takes {} operands, got {}", call.op.name, arity, call.operands.size());
  for (const Type& type : call.operands) {
    if (!(type == call.operand(0))) {
      constraint("elementwise_c1", "{}: operands {} and {} differ", call.op.name, to_string(call.operand(0)),
                 to_string(type));
    }
  }
  const DType dtype = call.operand(0).dtype;
  const bool fine = takes == Takes::floats    ? is_float(dtype)
                    : takes == Takes::numbers ? dtype != DType::boolean
                                              : dtype == DType::boolean;
  if (!fine) constraint("elementwise_c2", "{} does not take {}", call.op.name, name_of(dtype));
  return {call.operand(0)};
}

// All dims pass: "abc,abc->abc".
ShardingRule all_pass(const OpCall& call, std::size_t num_results = 1) {
  std::string dims;
  for (int i = 0; i < call.operand(0).ndim(); ++i) dims += static_cast<char>('a' + i);
  std::string notation;
  for (std::size_t i = 0; i < call.operands.size(); ++i) notation += (i > 0 ? "," : "") + dims;
  notation += "->";
  for (std::size_t i = 0; i < num_results; ++i) notation += (i > 0 ? "," : "") + dims;
  return sharding_rule(notation);
}

struct PerElement {
  std::int64_t flops, transcendentals;
};

using Fn = std::function<Scalar(std::span<const Scalar>)>;

OpDef elementwise(const char* name, const char* summary, const char* signature, std::size_t arity, Takes takes,
                  PerElement cost, Fn fn, std::function<Gradients(GradientCall&)> gradient) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.signature = signature;
  op.infer = [arity, takes](const OpCall& call) { return infer_elementwise(call, arity, takes); };
  op.gradient = std::move(gradient);
  op.work = [cost](const OpCall& call, std::span<const Type> results) {
    Work work = moves(call.operands, results);
    const std::int64_t n = results[0].num_elements();
    work.flops = n * cost.flops;
    work.transcendentals = n * cost.transcendentals;
    return work;
  };
  op.sharding = [](const OpCall& call) { return all_pass(call); };
  op.reference = [fn](const ReferenceCall& call) {
    std::vector<Scalar> x(call.operands.size());
    const std::int64_t n = call.results[0].type.num_elements();
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < x.size(); ++k) x[k] = call.operands[k].at(i);
      call.results[0].set(i, fn(x));
    }
  };
  op.elementwise = true;
  for (std::size_t i = 0; i < arity; ++i) op.in_place.push_back({0, static_cast<int>(i)});
  return op;
}

OpDef unary(const char* name, const char* summary, PerElement cost, Scalar (*fn)(Scalar),
            std::function<Gradients(GradientCall&)> gradient) {
  return elementwise(
      name, summary, "(x: float[...]) -> (y: like x)", 1, Takes::floats, cost,
      [fn](std::span<const Scalar> x) { return fn(x[0]); }, std::move(gradient));
}

OpDef binary(const char* name, const char* summary, Takes takes, PerElement cost, Scalar (*fn)(Scalar, Scalar),
             std::function<Gradients(GradientCall&)> gradient) {
  return elementwise(
      name, summary, "(a: number[...], b: like a) -> (y: like a)", 2, takes, cost,
      [fn](std::span<const Scalar> x) { return fn(x[0], x[1]); }, std::move(gradient));
}

// The gradient g · slope, for ops whose derivative is a function of the operand or the result.
template <typename Slope>
std::function<Gradients(GradientCall&)> by_slope(Slope slope) {
  return [slope](GradientCall& call) -> Gradients { return {mul(*call.cotangent(0), slope(call))}; };
}

Value one_minus(Value x) { return sub(full_like(x, 1), x); }

// Routes the cotangent to the chosen operand; the first operand wins ties.
std::function<Gradients(GradientCall&)> choice_gradient(const char* first_wins) {
  return [first_wins](GradientCall& call) -> Gradients {
    const Value g = *call.cotangent(0), zero = full_like(g, 0);
    const Value first = compare(call.operand(0), call.operand(1), first_wins);
    return {select(first, g, zero), select(first, zero, g)};
  };
}

OpDef make_compare() {
  OpDef op;
  op.name = "compare";
  op.summary = "y = a `kind` b; NaN compares false, ne true";
  op.signature = "(a: number[...], b: like a) -> (y: bool[...])";
  op.attrs = {{"kind", "string", "lt, le, gt, ge, eq or ne"}};
  op.infer = [](const OpCall& call) {
    const std::string& kind = call.attrs.get_string("kind");
    if (kind != "lt" && kind != "le" && kind != "gt" && kind != "ge" && kind != "eq" && kind != "ne") {
      constraint("elementwise_c3", "compare has no kind '{}'", kind);
    }
    return std::vector<Type>{infer_elementwise(call, 2, Takes::numbers)[0].with(DType::boolean)};
  };
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.sharding = [](const OpCall& call) { return all_pass(call); };
  op.reference = [](const ReferenceCall& call) {
    const std::string& kind = call.attrs.get_string("kind");
    const std::int64_t n = call.results[0].type.num_elements();
    for (std::int64_t i = 0; i < n; ++i) {
      const double a = call.operands[0].raw(i), b = call.operands[1].raw(i);
      const bool y = kind == "lt"   ? a < b
                     : kind == "le" ? a <= b
                     : kind == "gt" ? a > b
                     : kind == "ge" ? a >= b
                     : kind == "eq" ? a == b
                                    : a != b;
      call.results[0].set(i, s(y ? 1 : 0));
    }
  };
  op.elementwise = true;
  op.cheap = true;
  return op;
}

OpDef make_is_finite() {
  OpDef op = elementwise(
      "is_finite", "y = x is neither infinite nor NaN", "(x: float[...]) -> (y: bool[...])", 1, Takes::floats, {0, 0},
      [](std::span<const Scalar> x) { return s(std::isfinite(x[0].value()) ? 1 : 0); }, nullptr);
  op.infer = [](const OpCall& call) {
    return std::vector<Type>{infer_elementwise(call, 1, Takes::floats)[0].with(DType::boolean)};
  };
  op.in_place.clear();
  return op;
}

OpDef make_select() {
  OpDef op = elementwise(
      "select", "y = pred ? a : b", "(pred: bool[...], a: any[...], b: like a) -> (y: like a)", 3, Takes::numbers,
      {0, 0}, [](std::span<const Scalar> x) { return x[0].value() != 0 ? x[1] : x[2]; },
      [](GradientCall& call) -> Gradients {
        const Value g = *call.cotangent(0), zero = full_like(g, 0), pred = call.operand(0);
        return {std::nullopt, select(pred, g, zero), select(pred, zero, g)};
      });
  op.infer = [](const OpCall& call) {
    if (call.num_operands() != 3) constraint("elementwise_c1", "select takes 3 operands, got {}", call.num_operands());
    const Type& pred = call.operand(0);
    if (pred.dtype != DType::boolean || pred.shape != call.operand(1).shape || !(call.operand(1) == call.operand(2))) {
      constraint("elementwise_c1", "select of {}, {} and {}", to_string(pred), to_string(call.operand(1)),
                 to_string(call.operand(2)));
    }
    return std::vector<Type>{call.operand(1)};
  };
  op.in_place = {{0, 1}, {0, 2}};
  return op;
}

}  // namespace

namespace ops {

std::vector<OpDef> elementwise_ops() {
  std::vector<OpDef> list;
  list.push_back(unary(
      "neg", "y = -x", {1, 0}, [](Scalar x) { return -x; },
      [](GradientCall& c) -> Gradients { return {neg(*c.cotangent(0))}; }));
  list.push_back(unary(
      "exp", "y = e^x", {0, 1}, [](Scalar x) { return exp(x); },
      by_slope([](GradientCall& c) { return c.result(0); })));
  list.push_back(unary(
      "log", "y = ln x", {0, 1}, [](Scalar x) { return log(x); },
      [](GradientCall& c) -> Gradients { return {div(*c.cotangent(0), c.operand(0))}; }));
  list.push_back(unary(
      "tanh", "y = tanh x", {0, 1}, [](Scalar x) { return tanh(x); }, by_slope([](GradientCall& c) {
        const Value y = c.result(0);
        return one_minus(mul(y, y));
      })));
  list.push_back(unary("sigmoid", "y = 1 / (1 + e^-x)", {3, 1}, sigmoid_of, by_slope([](GradientCall& c) {
                         const Value y = c.result(0);
                         return mul(y, one_minus(y));
                       })));
  list.push_back(unary(
      "gelu", "y = x (1 + erf(x / sqrt 2)) / 2; arXiv:1606.08415", {4, 1},
      [](Scalar x) { return s(0.5) * x * (s(1) + erf(x * s(kSqrtHalf))); },
      [](GradientCall& c) -> Gradients { return {gelu_grad(c.operand(0), *c.cotangent(0))}; }));
  list.push_back(unary("gelu_tanh", "y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2; arXiv:1606.08415", {8, 1},
                       gelu_tanh_of,
                       [](GradientCall& c) -> Gradients { return {gelu_tanh_grad(c.operand(0), *c.cotangent(0))}; }));
  list.push_back(unary(
      "silu", "y = x / (1 + e^-x); arXiv:1702.03118", {4, 1}, [](Scalar x) { return x * sigmoid_of(x); },
      [](GradientCall& c) -> Gradients { return {silu_grad(c.operand(0), *c.cotangent(0))}; }));
  list.push_back(unary(
      "relu", "y = max(x, 0)", {0, 0}, [](Scalar x) { return max(x, s(0)); },
      [](GradientCall& c) -> Gradients {
        const Value y = c.result(0), zero = full_like(y, 0);
        return {select(compare(y, zero, "gt"), *c.cotangent(0), zero)};
      }));
  list.push_back(unary(
      "rsqrt", "y = 1 / sqrt x", {0, 1}, [](Scalar x) { return rsqrt(x); }, by_slope([](GradientCall& c) {
        const Value y = c.result(0);
        return scale(mul(y, mul(y, y)), -0.5);
      })));
  list.push_back(unary(
      "sqrt", "y = sqrt x", {0, 1}, [](Scalar x) { return sqrt(x); },
      [](GradientCall& c) -> Gradients { return {div(scale(*c.cotangent(0), 0.5), c.result(0))}; }));
  list.push_back(make_is_finite());

  list.push_back(binary(
      "add", "y = a + b", Takes::numbers, {1, 0}, [](Scalar a, Scalar b) { return a + b; },
      [](GradientCall& c) -> Gradients {
        return {*c.cotangent(0), *c.cotangent(0)};
      }));
  list.push_back(binary(
      "sub", "y = a - b", Takes::numbers, {1, 0}, [](Scalar a, Scalar b) { return a - b; },
      [](GradientCall& c) -> Gradients {
        return {*c.cotangent(0), c.needs(1) ? std::optional(neg(*c.cotangent(0))) : std::nullopt};
      }));
  list.push_back(binary(
      "mul", "y = a b", Takes::numbers, {1, 0}, [](Scalar a, Scalar b) { return a * b; },
      [](GradientCall& c) -> Gradients {
        Gradients d(2);
        if (c.needs(0)) d[0] = mul(*c.cotangent(0), c.operand(1));
        if (c.needs(1)) d[1] = mul(*c.cotangent(0), c.operand(0));
        return d;
      }));
  list.push_back(binary(
      "div", "y = a / b", Takes::floats, {1, 0}, [](Scalar a, Scalar b) { return a / b; },
      [](GradientCall& c) -> Gradients {
        Gradients d(2);
        if (c.needs(0)) d[0] = div(*c.cotangent(0), c.operand(1));
        if (c.needs(1)) d[1] = neg(div(mul(*c.cotangent(0), c.result(0)), c.operand(1)));
        return d;
      }));
  list.push_back(binary(
      "max", "y = the larger; NaN if either is", Takes::numbers, {0, 0}, [](Scalar a, Scalar b) { return max(a, b); },
      choice_gradient("ge")));
  list.push_back(binary(
      "min", "y = the smaller; NaN if either is", Takes::numbers, {0, 0}, [](Scalar a, Scalar b) { return min(a, b); },
      choice_gradient("le")));
  list.push_back(make_compare());
  list.push_back(binary(
      "logical_and", "y = a and b", Takes::bools, {0, 0},
      [](Scalar a, Scalar b) { return s(a.value() != 0 && b.value() != 0 ? 1 : 0); }, nullptr));
  list.push_back(make_select());
  list.push_back(binary("gelu_grad", "y = g d gelu(x)/dx", Takes::floats, {9, 2}, gelu_grad_of, nullptr));
  list.push_back(
      binary("gelu_tanh_grad", "y = g d gelu_tanh(x)/dx", Takes::floats, {16, 1}, gelu_tanh_grad_of, nullptr));
  list.push_back(binary("silu_grad", "y = g d silu(x)/dx", Takes::floats, {8, 1}, silu_grad_of, nullptr));
  return list;
}

}  // namespace ops

namespace {

Value one(std::string_view op, std::initializer_list<Value> operands, Attrs attrs = {}) {
  return operands.begin()->graph->apply(op, std::span(operands.begin(), operands.size()), std::move(attrs))[0];
}

}  // namespace

Value neg(Value x) { return one("neg", {x}); }
Value exp(Value x) { return one("exp", {x}); }
Value log(Value x) { return one("log", {x}); }
Value tanh(Value x) { return one("tanh", {x}); }
Value sigmoid(Value x) { return one("sigmoid", {x}); }
Value gelu(Value x) { return one("gelu", {x}); }
Value gelu_tanh(Value x) { return one("gelu_tanh", {x}); }
Value silu(Value x) { return one("silu", {x}); }
Value relu(Value x) { return one("relu", {x}); }
Value rsqrt(Value x) { return one("rsqrt", {x}); }
Value sqrt(Value x) { return one("sqrt", {x}); }
Value is_finite(Value x) { return one("is_finite", {x}); }
Value add(Value a, Value b) { return one("add", {a, b}); }
Value sub(Value a, Value b) { return one("sub", {a, b}); }
Value mul(Value a, Value b) { return one("mul", {a, b}); }
Value div(Value a, Value b) { return one("div", {a, b}); }
Value max(Value a, Value b) { return one("max", {a, b}); }
Value min(Value a, Value b) { return one("min", {a, b}); }
Value compare(Value a, Value b, std::string_view kind) { return one("compare", {a, b}, {{"kind", std::string(kind)}}); }
Value logical_and(Value a, Value b) { return one("logical_and", {a, b}); }
Value select(Value pred, Value if_true, Value if_false) { return one("select", {pred, if_true, if_false}); }
Value gelu_grad(Value x, Value g) { return one("gelu_grad", {x, g}); }
Value gelu_tanh_grad(Value x, Value g) { return one("gelu_tanh_grad", {x, g}); }
Value silu_grad(Value x, Value g) { return one("silu_grad", {x, g}); }

}  // namespace systole
