// softmax, and cross_entropy of integer labels with its gradient (describe/ops/softmax.cc, cross_entropy.cc). A label's
// logit is selected by comparing indices, so logits are read in their layout, without a gather between the passes.

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

struct Exponents {
  Ssa e, shift, sum;  // e^(x - shift) and its sums along the last dim
};

Exponents exponents(Builder& b, const Ssa& x) {
  const Ssa shift = shift_of(b, reduce_last(b, "maximum", x));
  const Ssa e = b.unary("exponential", b.binary("subtract", x, along_rows(b, shift, x.type)));
  return {e, shift, reduce_last(b, "add", e)};
}

std::vector<Ssa> softmax(Builder& b, const NodeCall& call) {
  const Exponents x = exponents(b, wide(b, call.operands[0]));
  const Ssa divisor = instead_of(b, x.sum, 0, 1);
  const Ssa y = b.binary("divide", x.e, along_rows(b, divisor, x.e.type));
  return {b.convert(y, call.results[0].dtype)};
}

// True at the label's logit; false everywhere in rows with a label out of range.
Ssa places_of(Builder& b, const Ssa& labels, const Type& logits) {
  const Type type(DType::i32, logits.shape);
  return b.compare("EQ", b.iota(type, type.ndim() - 1), along_rows(b, labels, type));
}

Ssa is_ignored(Builder& b, const Ssa& labels) { return b.compare("LT", labels, fill_like(b, labels, 0)); }

std::vector<Ssa> cross_entropy(Builder& b, const NodeCall& call) {
  const Ssa x = wide(b, call.operands[0]), &labels = call.operands[1];
  const Exponents exps = exponents(b, x);
  const Ssa lse = b.binary("add", exps.shift, b.unary("log", exps.sum));
  const Ssa picked = reduce_last(b, "add", b.select(places_of(b, labels, x.type), x, fill_like(b, x, 0)));
  const Ssa lowest = fill_like(b, lse, -kInfinity);
  const Ssa nothing = b.binary("and", b.compare("EQ", lse, lowest), b.compare("EQ", picked, lowest));
  const Ssa loss = b.select(nothing, fill_like(b, lse, kInfinity), b.binary("subtract", lse, picked));
  return {b.select(is_ignored(b, labels), fill_like(b, loss, 0), loss), lse};
}

std::vector<Ssa> cross_entropy_grad(Builder& b, const NodeCall& call) {
  const Ssa x = wide(b, call.operands[0]), &labels = call.operands[1], &lse = call.operands[2], &g = call.operands[3];
  const Ssa none = fill_like(b, x, 0);
  const Ssa e = b.unary("exponential", b.binary("subtract", x, along_rows(b, lse, x.type)));
  const Ssa nothing = b.compare("EQ", lse, fill_like(b, lse, -kInfinity));
  const Ssa p = b.select(along_rows(b, nothing, x.type), none, e);
  const Ssa hit = b.convert(places_of(b, labels, x.type), x.type.dtype);
  const Ssa dx = b.binary("multiply", b.binary("subtract", p, hit), along_rows(b, g, x.type));
  const Ssa masked = b.select(along_rows(b, is_ignored(b, labels), x.type), none, dx);
  return {b.convert(masked, call.results[0].dtype)};
}

}  // namespace

std::vector<OpLowering> softmax_lowerings() {
  return {{"softmax", softmax}, {"cross_entropy", cross_entropy}, {"cross_entropy_grad", cross_entropy_grad}};
}

}  // namespace systole::stablehlo
