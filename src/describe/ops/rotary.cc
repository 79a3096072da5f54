// Rotary position embedding (Su et al., arXiv:2104.09864) with the pairs of GPT-NeoX and Llama. With φ = position f_i
// and f_i = theta^(-2i/d), the pair (x_i, x_{i + d/2}) becomes
//
//   y_i = x_i cos φ - x_{i + d/2} sin φ          y_{i + d/2} = x_{i + d/2} cos φ + x_i sin φ
//
// `inverse` rotates by -φ, which is also the gradient. With `factor` the frequencies are those of Llama 3.1
// (Grattafiori et al., arXiv:2407.21783; formula from its released code): f_i (s + (1 - s) / factor), where s =
// (original_context f_i / 2π - low_freq_factor) / (high_freq_factor - low_freq_factor), clamped to [0, 1]. s is 1 for
// wavelengths 2π / f_i that fit at least high_freq_factor times into the original context, and 0 for those that fit at
// most low_freq_factor times.
//
// Constraints: C1 x[b, t, h, d] of a float type. C2 d even. C3 positions i32[b, t]. C4 theta > 0. C5 factor ≥ 1,
// low_freq_factor < high_freq_factor, original_context > 0, all four or none.
// Work: a power per frequency (d/2), and 7 with `factor`; an angle, a cosine and a sine per token and frequency; 6 per
// pair of x.

#include <cmath>
#include <numbers>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

std::optional<RotaryScaling> scaling_of(const Attrs& attrs) {
  int given = 0;
  for (const char* name : {"factor", "low_freq_factor", "high_freq_factor", "original_context"})
    given += attrs.find(name) != nullptr ? 1 : 0;
  if (given == 0) return std::nullopt;
  if (given != 4) constraint("rotary_c5", "{} of the 4 attributes of scaled frequencies", given);
  return RotaryScaling{attrs.get_double("factor"), attrs.get_double("low_freq_factor"),
                       attrs.get_double("high_freq_factor"), attrs.get_int("original_context")};
}

void check_scaling(const RotaryScaling& s) {
  if (s.factor >= 1 && s.low_freq_factor < s.high_freq_factor && s.original_context > 0) return;
  constraint("rotary_c5", "factor {}, low_freq_factor {}, high_freq_factor {}, original_context {}", s.factor,
             s.low_freq_factor, s.high_freq_factor, s.original_context);
}

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
  if (const auto scaling = scaling_of(call.attrs)) check_scaling(*scaling);
  return {x};
}

Gradients gradient(GradientCall& call) {
  const Attrs& attrs = call.attrs();
  const RotaryOptions back{attrs.get_double("theta"), scaling_of(attrs), !attrs.flag("inverse")};
  return {rotary(*call.cotangent(0), call.operand(1), back), std::nullopt};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const Type& x = call.operand(0);
  const std::int64_t tokens = x.size(0) * x.size(1), frequencies = x.size(3) / 2;
  work.flops = tokens * frequencies * (1 + 6 * x.size(2)) + (scaling_of(call.attrs) ? 7 * frequencies : 0);
  work.transcendentals = frequencies * (1 + 2 * tokens);
  return work;
}

ShardingRule sharding(const OpCall&) { return sharding_rule("bthd,bt->bthd", "", "d"); }

Scalar scaled(Scalar frequency, const RotaryScaling& r) {
  const Scalar turns = frequency * Scalar(static_cast<double>(r.original_context) / (2 * std::numbers::pi));
  Scalar s = (turns - Scalar(r.low_freq_factor)) / Scalar(r.high_freq_factor - r.low_freq_factor);
  s = max(Scalar(0), min(Scalar(1), s));
  return frequency * (s + (Scalar(1) - s) / Scalar(r.factor));
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &positions = call.operands[1], &y = call.results[0];
  const std::int64_t tokens = x.type.size(0) * x.type.size(1), heads = x.type.size(2), d = x.type.size(3);
  const Scalar theta(call.attrs.get_double("theta"));
  const std::int64_t direction = call.attrs.flag("inverse") ? -1 : 1;
  const std::optional<RotaryScaling> scaling = scaling_of(call.attrs);
  std::vector<Scalar> frequency;
  for (std::int64_t i = 0; i < d / 2; ++i) {
    frequency.push_back(pow(theta, Scalar(static_cast<double>(-2 * i) / static_cast<double>(d))));
    if (scaling) frequency.back() = scaled(frequency.back(), *scaling);
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
  op.summary = "(x_i, x_{i+d/2}) rotated by position theta^(-2i/d); arXiv:2104.09864";
  op.signature = "(x: float[b, t, h, d], positions: i32[b, t]) -> (y: like x)";
  op.attrs = {{"theta", "double", "base of the frequencies"},
              {"inverse", "bool", "rotates back", false},
              {"factor", "double", "slow frequencies are divided by this", false},
              {"low_freq_factor", "double", "slow: fewer rotations than this in original_context", false},
              {"high_freq_factor", "double", "fast, kept: more rotations than this", false},
              {"original_context", "int", "positions that the frequencies were first trained on", false}};
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.in_place = {{0, 0}};
  return op;
}

Value rotary(Value x, Value positions, const RotaryOptions& options) {
  const Value operands[] = {x, positions};
  Attrs attrs{{"theta", options.theta}, {"inverse", options.inverse}};
  if (const std::optional<RotaryScaling>& scaling = options.scaling) {
    attrs.set("factor", scaling->factor);
    attrs.set("low_freq_factor", scaling->low_freq_factor);
    attrs.set("high_freq_factor", scaling->high_freq_factor);
    attrs.set("original_context", scaling->original_context);
  }
  return x.graph->apply("rotary", operands, attrs)[0];
}

}  // namespace systole
