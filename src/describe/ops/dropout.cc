// dropout: y = x / (1 - rate) where the element's random bits keep it, else 0 (Srivastava et al., JMLR 15, 2014).
// Whether an element is kept depends on (seed, step, site, place) only: random_bits.h has the contract to the bit.
//
// With `length` tokens may be in any order: token t of x[b, t, …] has position places[t] in a row of `length` tokens.
//
// Constraints: C1 x has a float type. C2 seed, step, site and row are i64[]. C3 0 ≤ rate < 1. C4 places i32[t] if and
// only if there is `length`, which is at least 1, and x[b, t, …] then.
// The gradient is the same op on the cotangent with the same key.
// Work: one multiplication per element, kept or not, by 1 / (1 - rate) computed in double and rounded to the type of
// the arithmetic.

#include <array>

#include "describe/ir/op.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/random_bits.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const bool placed = call.attrs.find("length") != nullptr;
  ops::check_key(call, "dropout_c2", placed ? 1 : 0);
  if (!is_float(call.operand(0).dtype)) constraint("dropout_c1", "dropout of {}", to_string(call.operand(0)));
  const double rate = call.attrs.get_double("rate");
  if (!(rate >= 0 && rate < 1)) constraint("dropout_c3", "rate {} is not in [0, 1)", rate);
  if (placed && (call.operand(0).ndim() < 2 || call.attrs.get_int("length") < 1 ||
                 !(call.operand(5) == Type(DType::i32, {call.operand(0).size(1)})))) {
    constraint("dropout_c4", "places {} in rows of {} for {}", to_string(call.operand(5)), call.attrs.get_int("length"),
               to_string(call.operand(0)));
  }
  return {call.operand(0)};
}

Gradients gradient(GradientCall& call) {
  Gradients d(static_cast<std::size_t>(call.num_operands()));
  std::vector<Value> operands{*call.cotangent(0)};
  for (int i = 1; i < call.num_operands(); ++i) operands.push_back(call.operand(i));
  d[0] = call.graph().apply("dropout", operands, call.attrs())[0];
  return d;
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  work.flops = results[0].num_elements();
  return work;
}

// The place of each element.
class Places {
 public:
  explicit Places(const ReferenceCall& call)
      : call_(call),
        shape_(call.operands[0].type.shape),
        placed_(call.operands.size() > 5),
        row_(ops::first_row(call)),
        first_(ops::first_place(shape_, row_)) {}

  std::uint64_t of(std::int64_t i) const {
    if (!placed_) return first_ + static_cast<std::uint64_t>(i);
    const std::int64_t tokens = shape_[1], each = num_elements(Shape(shape_.begin() + 2, shape_.end()));
    const std::int64_t row = row_ + i / (tokens * each), place = call_.operands[5].integer(i / each % tokens);
    return static_cast<std::uint64_t>((row * call_.attrs.get_int("length") + place) * each + i % each);
  }

 private:
  const ReferenceCall& call_;
  const Shape& shape_;
  bool placed_;
  std::int64_t row_;
  std::uint64_t first_;
};

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const double rate = call.attrs.get_double("rate");
  const Scalar factor(1 / (1 - rate)), zero(0);
  const ops::PlaceBits bits = ops::place_bits(call);
  const Places places(call);
  for (std::int64_t i = 0; i < y.type.num_elements(); ++i) {
    const Scalar scaled = x.at(i) * factor;
    y.set(i, ops::kept(bits.word(places.of(i)), rate) ? scaled : zero);
  }
}

}  // namespace

namespace ops {

OpDef dropout_op() {
  OpDef op;
  op.name = "dropout";
  op.summary = "y = x / (1 - rate) where kept, else 0; JMLR 15, 2014";
  op.signature =
      "(x: float[...], seed: i64[], step: i64[], site: i64[], row: i64[], places: i32[t] with length) -> (y: like "
      "x)";
  op.attrs = {{"rate", "double", "share of elements dropped, in [0, 1)"},
              {"length", "int", "tokens of a whole row, of x[b, t, ...] whose places in it are given", false}};
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = random_sharding;
  op.local_rewrite = [](const OpCall& local, int, std::string_view, std::int64_t) { return random_rewrite(local); };
  op.reference = reference;
  op.in_place = {{0, 0}};
  return op;
}

}  // namespace ops

Value dropout(Value x, const RandomKey& key, double rate) {
  return x.graph->apply("dropout", std::array{x, key.seed, key.step, key.site, key.row}, {{"rate", rate}})[0];
}

}  // namespace systole
