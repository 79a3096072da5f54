// contract: einsum of two operands. With spec "bse,ehd->bshd", y[b,s,h,d] = Σ_e a[b,s,e] b[e,h,d]. A letter in both
// operands and the result is a batch dim; a letter in both operands only is summed; a letter in one operand and the
// result is kept. Products and sums are f32 (f64 for f64) for every operand type; the result is rounded once.
//
// Constraints: C1 the spec is letters "…,…->…", none twice in one term. C2 as many letters as dims. C3 a letter has one
// size. C4 each letter is in exactly two terms or all three. C5 both operands have one float type, and `dtype` is a
// float type. C6 filled is {used, all} with 0 < used ≤ all.
// The gradient: da = contract(g, b, "y,b->a"), db = contract(a, g, "a,y->b"), with g cast to the operands' type first.
// Work: a multiplication and an addition for each point of the letters' index space. All are model FLOPs, except with
// `filled`: when only some rows hold data (buffers of experts), their share of the rows counts, rounded down.

#include <array>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/routing.h"

namespace systole {
namespace {

using ops::at;

struct Spec {
  std::string a, b, y;
  std::string text() const { return a + "," + b + "->" + y; }
  bool operator==(const Spec&) const = default;
};

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

Spec parse(const std::string& text) {
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) {
    constraint("contract_c1", "the spec \"{}\" is not of the form \"ab,bc->ac\"", text);
  }
  const Spec spec{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  for (const std::string& term : {spec.a, spec.b, spec.y}) {
    for (std::size_t i = 0; i < term.size(); ++i) {
      const char c = term[i];
      const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!is_letter) constraint("contract_c1", "'{}' in the spec \"{}\" is not a letter", c, text);
      if (term.find(c, i + 1) != std::string::npos)
        constraint("contract_c1", "'{}' is twice in \"{}\" of the spec \"{}\"", c, term, text);
    }
  }
  for (const char c : spec.a + spec.b + spec.y) {
    if (has(spec.a, c) + has(spec.b, c) + has(spec.y, c) < 2) {
      constraint("contract_c4", "'{}' is in one term only of the spec \"{}\"", c, text);
    }
  }
  return spec;
}

// The summed letters, in the order of a.
std::string summed(const Spec& spec) {
  std::string letters;
  for (const char c : spec.a) {
    if (!has(spec.y, c)) letters += c;
  }
  return letters;
}

// {used, all}; {1, 1} without `filled`.
Ints filled_of(const Attrs& attrs) {
  if (attrs.find("filled") == nullptr) return {1, 1};
  const Ints& filled = attrs.get_ints("filled");
  if (filled.size() != 2 || filled[0] < 1 || filled[0] > filled[1])
    constraint("contract_c6", "filled is [{}]", fmt::join(filled, ", "));
  return filled;
}

Ints own_filled(const Attrs& attrs) { return attrs.find("filled") == nullptr ? Ints() : attrs.get_ints("filled"); }

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 2) constraint("contract_c1", "contract takes two operands, got {}", call.num_operands());
  const Spec spec = parse(call.attrs.get_string("spec"));
  const Type &a = call.operand(0), &b = call.operand(1);
  if (static_cast<int>(spec.a.size()) != a.ndim() || static_cast<int>(spec.b.size()) != b.ndim()) {
    constraint("contract_c2", "\"{}\" of {} and {}", spec.text(), to_string(a), to_string(b));
  }
  for (int i = 0; i < a.ndim(); ++i) {
    const std::size_t j = spec.b.find(at(spec.a, i));
    if (j != std::string::npos && b.size(static_cast<int>(j)) != a.size(i)) {
      constraint("contract_c3", "'{}' of \"{}\" is {} in {} and {} in {}", at(spec.a, i), spec.text(), a.size(i),
                 to_string(a), b.size(static_cast<int>(j)), to_string(b));
    }
  }
  const DType dtype = call.attrs.find("dtype") != nullptr ? call.attrs.get_dtype("dtype") : a.dtype;
  if (a.dtype != b.dtype || !is_float(a.dtype) || !is_float(dtype)) {
    constraint("contract_c5", "{} and {} to {}: one float type, cast first", to_string(a), to_string(b),
               name_of(dtype));
  }
  filled_of(call.attrs);
  Shape shape;
  std::vector<std::string> names;
  for (const char c : spec.y) {
    const std::size_t i = spec.a.find(c), j = spec.b.find(c);
    const bool in_a = i != std::string::npos, in_b = j != std::string::npos;
    shape.push_back(in_a ? a.shape[i] : b.shape[j]);
    const std::string a_name = in_a ? a.name(static_cast<int>(i)) : "";
    names.push_back(in_b && a_name.empty() ? b.name(static_cast<int>(j)) : a_name);
  }
  return {Type(dtype, std::move(shape), std::move(names))};
}

Gradients gradient(GradientCall& call) {
  const Spec spec = parse(call.attrs().get_string("spec"));
  const Value g = cast(*call.cotangent(0), call.operand_type(0).dtype);
  Gradients d(2);
  const Ints filled = own_filled(call.attrs());
  if (call.needs(0)) d[0] = contract_filled(g, call.operand(1), Spec{spec.y, spec.b, spec.a}.text(), filled);
  if (call.needs(1)) d[1] = contract_filled(call.operand(0), g, Spec{spec.a, spec.y, spec.b}.text(), filled);
  return d;
}

Work work(const OpCall& call, std::span<const Type> results) {
  const Spec spec = parse(call.attrs.get_string("spec"));
  Work work = moves(call.operands, results);
  std::int64_t points = results[0].num_elements();
  for (const char c : summed(spec)) points *= call.operand(0).shape[spec.a.find(c)];
  const Ints filled = filled_of(call.attrs);
  work.flops = 2 * points;
  work.model_flops = 2 * (points / filled[1] * filled[0] + points % filled[1] * filled[0] / filled[1]);
  return work;
}

// Strides along `letters` in a tensor with dims `term`; 0 for a letter that it lacks.
std::vector<std::int64_t> strides_along(const std::string& letters, const std::string& term, const Shape& shape) {
  const std::vector<std::int64_t> own = strides_of(shape);
  std::vector<std::int64_t> strides;
  for (const char c : letters) strides.push_back(has(term, c) ? own[term.find(c)] : 0);
  return strides;
}

void reference(const ReferenceCall& call) {
  const Spec spec = parse(call.attrs.get_string("spec"));
  const TensorView &a = call.operands[0], &b = call.operands[1], &y = call.results[0];
  const std::string sum = summed(spec);
  Shape sum_shape;
  for (const char c : sum) sum_shape.push_back(a.type.shape[spec.a.find(c)]);
  const auto a_out = strides_along(spec.y, spec.a, a.type.shape), b_out = strides_along(spec.y, spec.b, b.type.shape);
  const auto a_sum = strides_along(sum, spec.a, a.type.shape), b_sum = strides_along(sum, spec.b, b.type.shape);
  // Where the factors of each summand are, from those of the first.
  std::vector<std::array<std::int64_t, 2>> summands;
  ops::for_each_index(sum_shape, [&](const Shape& k) {
    summands.push_back({ops::offset_of(k, a_sum), ops::offset_of(k, b_sum)});
  });
  std::int64_t i = 0;
  ops::for_each_index(y.type.shape, [&](const Shape& out) {
    const std::int64_t a_first = ops::offset_of(out, a_out), b_first = ops::offset_of(out, b_out);
    Scalar total(0);
    for (const auto& [in_a, in_b] : summands) total += a.at(a_first + in_a) * b.at(b_first + in_b);
    y.set(i++, total);
  });
}

}  // namespace

namespace ops {

OpDef contract_op() {
  OpDef op;
  op.name = "contract";
  op.summary = "einsum of two operands";
  op.signature = "(a: float[...], b: a's type[...]) -> (y: dtype[...])";
  op.attrs = {{"spec", "string", "\"bse,ehd->bshd\""},
              {"dtype", "dtype", "of the result; a's when absent", false},
              {"filled", "ints", "[used, all] of its rows, the others being padding; absent: all are used", false}};
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = [](const OpCall& call) {
    const Spec spec = parse(call.attrs.get_string("spec"));
    return sharding_rule(spec.text(), summed(spec));
  };
  op.reference = reference;
  op.precision = PrecisionRule::compute;
  return op;
}

}  // namespace ops

Value contract_filled(Value a, Value b, std::string_view spec, const Ints& filled) {
  Attrs attrs{{"spec", std::string(spec)}};
  if (!filled.empty()) attrs.set("filled", filled);
  return a.graph->apply("contract", std::array{a, b}, std::move(attrs))[0];
}

Value contract(Value a, Value b, std::string_view spec, std::optional<DType> dtype) {
  Attrs attrs{{"spec", std::string(spec)}};
  if (dtype && *dtype != a.dtype()) attrs.set("dtype", std::string(name_of(*dtype)));
  return a.graph->apply("contract", std::array{a, b}, std::move(attrs))[0];
}

}  // namespace systole
