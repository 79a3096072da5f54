// cast: y = x as another type, to nearest even (ground/tensor/dtype.h). stochastic_round: x to bf16, up or down, with
// the probability that makes it unbiased (Gupta et al., arXiv:1502.02551).
//
// |x| lies between the bf16 neighbours lo and hi (hi = lo for a bf16), and word is the element's 32 random bits
// (random_bits.h): |y| = hi when (|x| - lo) / (hi - lo) + word / 2^32 ≥ 1. For an f32 this is the upper half of
// bits(|x|) + (word >> 16). Above the largest bf16, hi is 2^128, stored as infinity. Infinities and NaN stay.
//
// Constraints: cast C1 one operand. stochastic_round C1 x has a float type. C2 seed, step, site and row are i64[].
// The gradient casts back; that of stochastic_round treats rounding as the identity.

#include <array>
#include <cmath>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/random_bits.h"

namespace systole {
namespace {

std::vector<Type> infer_cast(const OpCall& call) {
  if (call.num_operands() != 1) constraint("cast_c1", "cast takes one operand, got {}", call.num_operands());
  return {call.operand(0).with(call.attrs.get_dtype("dtype"))};
}

std::vector<Type> infer_stochastic_round(const OpCall& call) {
  ops::check_key(call, "stochastic_round_c2");
  if (!is_float(call.operand(0).dtype))
    constraint("stochastic_round_c1", "stochastic_round of {}", to_string(call.operand(0)));
  return {call.operand(0).with(DType::bf16)};
}

Gradients cast_back(GradientCall& call, std::size_t operands) {
  Gradients d(operands);
  if (is_float(call.operand_type(0).dtype) && is_float(call.result_type(0).dtype))
    d[0] = cast(*call.cotangent(0), call.operand_type(0).dtype);
  return d;
}

// The largest bf16 that is at most `magnitude`. REQUIRES: `magnitude` is finite.
double bf16_below(double magnitude) {
  float near = static_cast<float>(std::min(magnitude, 0x1.fffffep127));
  if (static_cast<double>(near) > magnitude) near = std::nextafter(near, 0.0f);
  std::uint32_t bits;
  std::memcpy(&bits, &near, sizeof bits);
  return static_cast<double>(from_bf16(static_cast<std::uint16_t>(bits >> 16)));
}

// The distance from a bf16 to the next: 2^-133 for subnormals, else 2^(e - 7).
double bf16_spacing(double lo) { return lo < 0x1p-126 ? 0x1p-133 : std::ldexp(1.0, std::ilogb(lo) - 7); }

double round_stochastically(double x, std::uint32_t word) {
  if (!std::isfinite(x)) return x;
  const double magnitude = std::fabs(x), lo = bf16_below(magnitude), spacing = bf16_spacing(lo);
  const double fraction = (magnitude - lo) / spacing;
  const bool up = fraction + static_cast<double>(word) * 0x1p-32 >= 1;
  return std::copysign(up ? lo + spacing : lo, x);
}

void reference_cast(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const bool exact =
      is_integer(x.type.dtype) && is_integer(y.type.dtype) && size_of(x.type.dtype) == 8 && size_of(y.type.dtype) == 8;
  for (std::int64_t i = 0; i < y.type.num_elements(); ++i) {
    if (exact && (x.type.dtype == y.type.dtype || x.integer(i) >= 0)) {
      ops::copy_element(x, i, y, i);  // beyond 2^53 a double would round
    } else {
      y.set(i, x.at(i));
    }
  }
}

OpDef make_cast() {
  OpDef op;
  op.name = "cast";
  op.summary = "y = x as another type, to nearest even";
  op.signature = "(x: any[...]) -> (y: dtype[...])";
  op.attrs = {{"dtype", "dtype", "of the result"}};
  op.infer = infer_cast;
  op.gradient = [](GradientCall& call) { return cast_back(call, 1); };
  op.sharding = [](const OpCall& call) {
    const std::string dims = ops::letters(call.operand(0).ndim());
    return sharding_rule(dims + "->" + dims);
  };
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.reference = reference_cast;
  op.elementwise = true;
  op.cheap = true;
  return op;
}

OpDef make_stochastic_round() {
  OpDef op;
  op.name = "stochastic_round";
  op.summary = "y = x as bf16, up or down with the probability that is exact in the mean; arXiv:1502.02551";
  op.signature = "(x: float[...], seed: i64[], step: i64[], site: i64[], row: i64[]) -> (y: bf16[...])";
  op.infer = infer_stochastic_round;
  op.gradient = [](GradientCall& call) { return cast_back(call, 5); };
  op.sharding = ops::random_sharding;
  op.local_rewrite = [](const OpCall& local, int, std::string_view, std::int64_t) {
    return ops::random_rewrite(local);
  };
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.reference = [](const ReferenceCall& call) {
    const TensorView &x = call.operands[0], &y = call.results[0];
    const ops::PlaceBits bits = ops::place_bits(call);
    const std::uint64_t first = ops::first_place(x.type.shape, ops::first_row(call));
    for (std::int64_t i = 0; i < y.type.num_elements(); ++i) {
      y.set(i, Scalar(round_stochastically(x.raw(i), bits.word(first + static_cast<std::uint64_t>(i)))));
    }
  };
  op.precision = PrecisionRule::f32;
  return op;
}

}  // namespace

namespace ops {

std::vector<OpDef> cast_ops() { return {make_cast(), make_stochastic_round()}; }

}  // namespace ops

Value cast(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return x.graph->apply("cast", std::array{x}, {{"dtype", std::string(name_of(dtype))}})[0];
}

Value stochastic_round(Value x, const RandomKey& key) {
  return x.graph->apply("stochastic_round", std::array{x, key.seed, key.step, key.site, key.row})[0];
}

}  // namespace systole
