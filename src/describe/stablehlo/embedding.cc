// embedding and its gradient, embedding_int8, and rotary (describe/ops/embedding.cc, contract_int8.cc, rotary.cc).
//
// Ids are clamped to the table, and results of invalid ids are masked. At long contexts rotary's angles need more
// digits than f32 has, and accelerators have no f64. So a frequency is a fraction of a turn in 64 fixed-point bits;
// multiplying it by the position drops whole turns by overflow, and only the rest becomes f32. f64 operands use f64.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

struct Rows {
  Ssa ids, inside;  // clamped to the table; whether the id was valid
};

Rows rows_within(Builder& b, const Ssa& ids, std::int64_t rows) {
  const Ssa zero = fill_like(b, ids, 0), last = fill_like(b, ids, static_cast<double>(rows - 1));
  const Ssa inside = b.binary("and", b.compare("GE", ids, zero), b.compare("LE", ids, last));
  return {b.binary("maximum", b.binary("minimum", ids, last), zero), inside};
}

Ssa zeros_outside(Builder& b, const Ssa& inside, const Ssa& x) {
  return b.select(along_rows(b, inside, x.type), x, fill_like(b, x, 0));
}

std::vector<Ssa> embedding(Builder& b, const NodeCall& call) {
  const Ssa& table = call.operands[0];
  if (table.type.size(0) == 0) return {b.constant(call.results[0], 0)};
  const Rows rows = rows_within(b, call.operands[1], table.type.size(0));
  return {zeros_outside(b, rows.inside, b.gather_rows(table, rows.ids))};
}

std::vector<Ssa> embedding_int8(Builder& b, const NodeCall& call) {
  const Ssa &table = call.operands[0], &scale = call.operands[1], &ids = call.operands[2];
  const Type& y = call.results[0];
  const std::int64_t v = table.type.size(0);
  if (v == 0 || y.num_elements() == 0) return {b.constant(y, 0)};
  const Rows rows = rows_within(b, ids, v);
  const Ssa scales = b.reshape(b.gather_rows(b.reshape(scale, {v, 1}), rows.ids), ids.type.shape);
  const Ssa taken = b.convert(b.gather_rows(table, rows.ids), DType::f32);
  return {zeros_outside(b, rows.inside, b.binary("multiply", along_rows(b, scales, y), taken))};
}

std::vector<Ssa> embedding_grad(Builder& b, const NodeCall& call) {
  const Type& result = call.results[0];
  const bool f64 = result.dtype == DType::f64 || call.operands[1].type.dtype == DType::f64;
  const Rows rows = rows_within(b, call.operands[0], result.size(0));
  const Ssa g = b.convert(call.operands[1], f64 ? DType::f64 : DType::f32);
  const Ssa sums = b.constant(result.with(g.type.dtype), 0);
  return {b.convert(b.scatter_add_rows(sums, rows.ids, zeros_outside(b, rows.inside, g)), result.dtype)};
}

double scaled_frequency(double frequency, const Attrs& attrs) {
  if (attrs.find("factor") == nullptr) return frequency;
  const double low = attrs.get_double("low_freq_factor"), high = attrs.get_double("high_freq_factor");
  const double turns = static_cast<double>(attrs.get_int("original_context")) * frequency / (2 * std::numbers::pi);
  const double s = std::clamp((turns - low) / (high - low), 0.0, 1.0);
  return frequency * (s + (1 - s) / attrs.get_double("factor"));
}

std::vector<double> frequencies(const Attrs& attrs, std::int64_t d) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < d / 2; ++i) {
    const double exponent = static_cast<double>(-2 * i) / static_cast<double>(d);
    all.push_back(scaled_frequency(std::pow(attrs.get_double("theta"), exponent), attrs));
  }
  return all;
}

struct Turn {
  Ssa cos, sin;  // [b, t, d/2]
};

Turn turn_by(Builder& b, const Ssa& angle) { return {b.unary("cosine", angle), b.unary("sine", angle)}; }

// positions[b, t] times table[d/2], both of the same type.
Ssa by_frequency(Builder& b, const Ssa& positions, const Ssa& table) {
  const Type type(table.type.dtype, {positions.type.size(0), positions.type.size(1), table.type.size(0)});
  return b.binary("multiply", along_rows(b, positions, type), along_last(b, table, type));
}

Turn turn_in_f64(Builder& b, const Ssa& positions, const std::vector<double>& numbers) {
  const Ssa table = b.table(Type(DType::f64, {static_cast<std::int64_t>(numbers.size())}), numbers);
  return turn_by(b, by_frequency(b, b.convert(positions, DType::f64), table));
}

// Fractions of a turn as 64 fixed-point bits, from two tables of 32 bits.
Ssa fixed_point_table(Builder& b, const std::vector<double>& numbers) {
  std::vector<double> upper, lower;
  for (const double number : numbers) {
    const double turns = number / (2 * std::numbers::pi), fraction = std::ldexp(turns - std::floor(turns), 32);
    upper.push_back(std::floor(fraction));
    lower.push_back(std::floor(std::ldexp(fraction - std::floor(fraction), 32)));
  }
  const Type type(DType::u32, {static_cast<std::int64_t>(numbers.size())});
  const Ssa high = b.convert(b.table(type, upper), DType::u64), low = b.convert(b.table(type, lower), DType::u64);
  return b.binary("or", b.binary("shift_left", high, b.integer(high.type, 32)), low);
}

// |position| times the fraction of a turn, modulo 2^64 (one turn); the upper half is a signed fraction of a turn.
Turn turn_in_fixed_point(Builder& b, const Ssa& positions, const std::vector<double>& numbers) {
  const Ssa size = b.bitcast(b.unary("abs", positions), positions.type.with(DType::u32));
  const Ssa product = by_frequency(b, b.convert(size, DType::u64), fixed_point_table(b, numbers));
  const Ssa upper = b.binary("shift_right_logical", product, b.integer(product.type, 32));
  const Ssa part = b.convert(upper, DType::u32);
  const Ssa angle = scaled(b, b.convert(b.bitcast(part, part.type.with(DType::i32)), DType::f32),
                           std::ldexp(2 * std::numbers::pi, -32));
  const Turn turn = turn_by(b, angle);
  const Ssa back = along_rows(b, b.compare("LT", positions, fill_like(b, positions, 0)), angle.type);
  return {turn.cos, b.select(back, b.unary("negate", turn.sin), turn.sin)};
}

// Half `index` of x's last dim.
Ssa half_of(Builder& b, const Ssa& x, std::int64_t index) {
  Shape start(x.type.shape.size(), 0), limit = x.type.shape;
  start.back() = index * x.type.size(3) / 2;
  limit.back() = (index + 1) * x.type.size(3) / 2;
  return b.slice(x, start, limit);
}

std::vector<Ssa> rotary(Builder& b, const NodeCall& call) {
  const Attrs& attrs = call.node.attrs;
  const Type& type = call.results[0];
  if (type.num_elements() == 0) return {call.operands[0]};
  const Ssa x = wide(b, call.operands[0]), &positions = call.operands[1];
  const std::vector<double> numbers = frequencies(attrs, type.size(3));
  const Turn turn =
      x.type.dtype == DType::f64 ? turn_in_f64(b, positions, numbers) : turn_in_fixed_point(b, positions, numbers);
  const Ssa low = half_of(b, x, 0), high = half_of(b, x, 1);
  const auto times = [&](const Ssa& part, const Ssa& factor) {
    const int dims[] = {0, 1, 3};
    return b.binary("multiply", part, b.broadcast(factor, low.type, dims));
  };
  const bool inverse = attrs.flag("inverse");
  const Ssa parts[] = {b.binary(inverse ? "add" : "subtract", times(low, turn.cos), times(high, turn.sin)),
                       b.binary(inverse ? "subtract" : "add", times(high, turn.cos), times(low, turn.sin))};
  return {b.convert(b.concatenate(parts, 3), type.dtype)};
}

}  // namespace

std::vector<OpLowering> embedding_lowerings() {
  return {{"embedding", embedding},
          {"embedding_int8", embedding_int8},
          {"embedding_grad", embedding_grad},
          {"rotary", rotary}};
}

}  // namespace systole::stablehlo
