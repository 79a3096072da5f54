// dropout and stochastic_round (describe/ops/dropout.cc, cast.cc). The bits of an element depend only on its index
// (describe/ops/random_bits.h) and are exactly those of the other backends: Philox4x32-10 in integer arithmetic, never
// the compiler's own generator. Each element computes its whole block and uses one of its four words. That is more
// arithmetic than one block per four elements, but it is elementwise, so it fuses into its consumer without any copy.

#include <array>
#include <cmath>
#include <optional>

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"
#include "ground/base/philox.h"

namespace systole::stablehlo {
namespace {

// The bit arithmetic of one call, in the shape of its elements.
class Bits {
 public:
  Bits(Builder& b, const Shape& shape) : b_(b), narrow_(DType::u32, shape), wide_(DType::u64, shape) {}

  Ssa u32(std::uint64_t value) { return b_.integer(narrow_, value); }
  Ssa u64(std::uint64_t value) { return b_.integer(wide_, value); }
  Ssa upper(const Ssa& x) { return b_.convert(b_.binary("shift_right_logical", x, u64(32)), DType::u32); }
  Ssa lower(const Ssa& x) { return b_.convert(b_.binary("and", x, u64(0xffffffffu)), DType::u32); }
  Ssa low_of(const Ssa& scalar) {  // the lower 32 bits of an i64[], broadcast
    const Ssa bits = b_.bitcast(scalar, Type(DType::u64, {}));
    const Ssa low = b_.binary("and", bits, b_.integer(bits.type, 0xffffffffu));
    return b_.splat(b_.convert(low, DType::u32), narrow_);
  }
  Ssa high_of(const Ssa& scalar) {
    const Ssa bits = b_.bitcast(scalar, Type(DType::u64, {}));
    const Ssa high = b_.binary("shift_right_logical", bits, b_.integer(bits.type, 32));
    return b_.splat(b_.convert(high, DType::u32), narrow_);
  }

  // row · elements_per_row + index, u64. For x[b, t, …] with `tokens`[t] in rows of `length`, the index of dim 1 is
  // taken from `tokens`, and elements_per_row counts a row of `length`.
  Ssa places(const Ssa& row, const std::optional<Ssa>& tokens = {}, std::int64_t length = 0) {
    if (wide_.shape.empty()) return u64(0);
    Shape shape = wide_.shape;
    if (tokens) shape[1] = length;
    const std::int64_t per_row = num_elements(Shape(shape.begin() + 1, shape.end()));
    const Ssa bits = b_.bitcast(row, Type(DType::u64, {}));
    const auto elements = static_cast<std::uint64_t>(per_row);
    Ssa place = b_.splat(b_.binary("multiply", bits, b_.integer(bits.type, elements)), wide_);
    std::uint64_t stride = 1;
    for (int dim = wide_.ndim(); dim-- > 0;
         stride *= static_cast<std::uint64_t>(shape[static_cast<std::size_t>(dim)])) {
      const bool given = tokens && dim == 1;
      const Ssa index =
          given ? b_.broadcast(b_.convert(*tokens, DType::u64), wide_, std::array{1}) : b_.iota(wide_, dim);
      place = b_.binary("add", place, b_.binary("multiply", index, u64(stride)));
    }
    return place;
  }

  // philox(key, counter), word by word.
  std::array<Ssa, 4> philox(std::array<Ssa, 2> key, std::array<Ssa, 4> counter) {
    const Ssa factor0 = u64(0xD2511F53u), factor1 = u64(0xCD9E8D57u);
    const Ssa weyl0 = u32(0x9E3779B9u), weyl1 = u32(0xBB67AE85u);
    for (int round = 0; round < 10; ++round) {
      const Ssa product0 = b_.binary("multiply", factor0, b_.convert(counter[0], DType::u64));
      const Ssa product1 = b_.binary("multiply", factor1, b_.convert(counter[2], DType::u64));
      counter = {exclusive(upper(product1), exclusive(counter[1], key[0])), lower(product1),
                 exclusive(upper(product0), exclusive(counter[3], key[1])), lower(product0)};
      key = {b_.binary("add", key[0], weyl0), b_.binary("add", key[1], weyl1)};
    }
    return counter;
  }

  // The random word of each index.
  Ssa words(const Ssa& seed, const Ssa& step, const Ssa& site, const Ssa& place) {
    const Ssa quad = b_.binary("shift_right_logical", place, u64(2));
    const std::array<Ssa, 4> block =
        philox({low_of(seed), high_of(seed)}, {lower(quad), upper(quad), low_of(site), low_of(step)});
    const Ssa odd = is_set(place, 1), late = is_set(place, 2);
    return b_.select(late, b_.select(odd, block[3], block[2]), b_.select(odd, block[1], block[0]));
  }

 private:
  Ssa exclusive(const Ssa& x, const Ssa& y) { return b_.binary("xor", x, y); }
  Ssa is_set(const Ssa& x, std::uint64_t bit) { return b_.compare("NE", b_.binary("and", x, u64(bit)), u64(0)); }

  Builder& b_;
  Type narrow_, wide_;
};

// The random words of a call (x, seed, step, site, row); dropout may have `tokens` as a further operand.
Ssa words_of(Builder& b, const NodeCall& call) {
  Bits bits(b, call.results[0].shape);
  const bool placed = call.operands.size() > 5;
  const Ssa places = placed ? bits.places(call.operands[4], call.operands[5], call.node.attrs.get_int("length"))
                            : bits.places(call.operands[4]);
  return bits.words(call.operands[1], call.operands[2], call.operands[3], places);
}

// Keeps an element if (word >> 8) / 2^24 ≥ rate, compared as integers.
std::vector<Ssa> dropout(Builder& b, const NodeCall& call) {
  const Type& type = call.results[0];
  const double rate = call.node.attrs.get_double("rate");
  const Ssa x = wide(b, call.operands[0]), word = words_of(b, call);
  const auto threshold = static_cast<std::uint64_t>(std::ceil(std::ldexp(rate, 24)));
  const Ssa top = b.binary("shift_right_logical", word, b.integer(word.type, 8));
  const Ssa kept = b.compare("GE", top, b.integer(word.type, threshold));
  const Ssa y = b.convert(scaled(b, x, 1 / (1 - rate)), type.dtype);
  return {b.select(kept, y, fill_like(b, y, 0))};
}

// For an f64 magnitude: the largest bf16 not above it, as the u32 bits of an f32.
Ssa bf16_below(Builder& b, const Ssa& magnitude) {
  const Ssa capped = b.binary("minimum", magnitude, fill_like(b, magnitude, 0x1.fffffep127));
  const Ssa near = b.convert(capped, DType::f32), bits = b.bitcast(near, near.type.with(DType::u32));
  const Ssa past = b.compare("GT", b.convert(near, DType::f64), magnitude);
  const Ssa below = b.select(past, b.binary("subtract", bits, b.integer(bits.type, 1)), bits);
  return b.binary("and", below, b.integer(bits.type, 0xffff0000u));
}

// The distance from a bf16, given by its bits, to the next, as an f64: 2^-133 for subnormals, else 2^(e - 7).
Ssa bf16_spacing(Builder& b, const Ssa& bits) {
  const Ssa exponent = b.binary("shift_right_logical", bits, b.integer(bits.type, 23));
  const Ssa held = b.convert(b.binary("maximum", exponent, b.integer(bits.type, 1)), DType::u64);
  const Ssa biased = b.binary("add", held, b.integer(held.type, 1023 - 127 - 7));
  return b.bitcast(b.binary("shift_left", biased, b.integer(held.type, 52)), held.type.with(DType::f64));
}

// An f64 magnitude, rounded stochastically.
Ssa round_f64(Builder& b, const Ssa& magnitude, const Ssa& word) {
  const Ssa bits = bf16_below(b, magnitude), spacing = bf16_spacing(b, bits);
  const Ssa lo = b.convert(b.bitcast(bits, bits.type.with(DType::f32)), DType::f64);
  const Ssa fraction = b.binary("divide", b.binary("subtract", magnitude, lo), spacing);
  const Ssa sum = b.binary("add", fraction, scaled(b, b.convert(word, DType::f64), 0x1p-32));
  return b.select(b.compare("GE", sum, fill_like(b, sum, 1)), b.binary("add", lo, spacing), lo);
}

Ssa stochastic_round_f64(Builder& b, const Ssa& x, const Ssa& word) {
  const Ssa size = round_f64(b, b.unary("abs", x), word), zero = fill_like(b, x, 0);
  const Ssa rounded = b.select(b.compare("LT", x, zero), b.unary("negate", size), size);
  return b.select(b.binary("and", b.is_finite(x), b.compare("NE", x, zero)), rounded, x);  // -0 stays
}

// Adds 16 random bits to |x|'s bits and keeps the upper half, in integers, so that nothing is flushed to zero.
Ssa stochastic_round_f32(Builder& b, const Ssa& x, const Ssa& word) {
  const auto number = [&](std::uint64_t value) { return b.integer(word.type, value); };
  const Ssa bits = b.bitcast(x, word.type), size = b.binary("and", bits, number(0x7fffffffu));
  const Ssa sum = b.binary("add", size, b.binary("shift_right_logical", word, number(16)));
  const Ssa sign = b.binary("and", bits, number(0x80000000u));
  const Ssa rounded = b.binary("or", b.binary("and", sum, number(0xffff0000u)), sign);
  return b.bitcast(b.select(b.compare("LT", size, number(0x7f800000u)), rounded, bits), x.type);
}

std::vector<Ssa> stochastic_round(Builder& b, const NodeCall& call) {
  const Ssa x = wide(b, call.operands[0]), word = words_of(b, call);
  const bool f64 = x.type.dtype == DType::f64;
  return {b.convert(f64 ? stochastic_round_f64(b, x, word) : stochastic_round_f32(b, x, word), DType::bf16)};
}

}  // namespace

std::vector<OpLowering> random_lowerings() { return {{"dropout", dropout}, {"stochastic_round", stochastic_round}}; }

}  // namespace systole::stablehlo
