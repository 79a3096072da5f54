// dropout: y = x / (1 - rate) where the element's random bits keep it, else 0 (Srivastava et al., JMLR 15, 2014).
// Which are kept is a function of (seed, step, site, place) alone: random_bits.h has the contract to the bit.
//
// Constraints: C1 x is of a float type. C2 seed, step, site and row are i64[]. C3 0 ≤ rate < 1.
// The gradient is the same op on the cotangent with the same key.
// Work: one multiplication an element, kept or not, by 1 / (1 - rate) computed in double and rounded to the type of
// the arithmetic.

#include <array>

#include "describe/graph/op.h"
#include "describe/graph/ops/list.h"
#include "describe/graph/ops/ops.h"
#include "describe/graph/ops/random_bits.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  ops::check_key(call, "dropout_c2");
  if (!is_float(call.operand(0).dtype)) constraint("dropout_c1", "dropout of {}", to_string(call.operand(0)));
  const double rate = call.attrs.get_double("rate");
  if (!(rate >= 0 && rate < 1)) constraint("dropout_c3", "rate {} is not in [0, 1)", rate);
  return {call.operand(0)};
}

Gradients gradient(GradientCall& call) {
  Gradients d(5);
  const RandomKey key{call.operand(1), call.operand(2), call.operand(3), call.operand(4)};
  d[0] = dropout(*call.cotangent(0), key, call.attrs().get_double("rate"));
  return d;
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  work.flops = results[0].num_elements();
  return work;
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const double rate = call.attrs.get_double("rate");
  const Scalar factor(1 / (1 - rate)), zero(0);
  const ops::PlaceBits bits = ops::place_bits(call);
  const std::uint64_t first = ops::first_place(x.type.shape, ops::first_row(call));
  for (std::int64_t i = 0; i < y.type.num_elements(); ++i) {
    const Scalar scaled = x.at(i) * factor;
    y.set(i, ops::kept(bits.word(first + static_cast<std::uint64_t>(i)), rate) ? scaled : zero);
  }
}

}  // namespace

namespace ops {

OpDef dropout_op() {
  OpDef op;
  op.name = "dropout";
  op.summary = "y = x / (1 - rate) where kept, else 0; JMLR 15, 2014";
  op.signature = "(x: float[...], seed: i64[], step: i64[], site: i64[], row: i64[]) -> (y: like x)";
  op.attrs = {{"rate", "double", "share of elements dropped, in [0, 1)"}};
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
