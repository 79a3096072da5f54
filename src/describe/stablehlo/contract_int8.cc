// contract_int8 (describe/ops/contract_int8.cc), in the formula's order of operations. The product
// is a dot of i8 with sums in i32, which GPUs and TPUs have as an instruction.

#include <limits>

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

struct QuantizedRows {
  Ssa q, scale;  // i8 like x; f32 per row, NaN where a value is not finite
};

QuantizedRows quantized(Builder& b, const Ssa& x) {
  const Ssa top = reduce_last(b, "maximum", b.unary("abs", x));
  const Ssa finite = b.is_finite(top), smallest = fill_like(b, top, 0x1p-100), limit = fill_like(b, top, 127);
  const Ssa counts = b.binary("and", finite, b.compare("GE", top, smallest));
  const Ssa largest = b.select(counts, top, smallest);
  const Ssa scaled = b.binary("multiply", x, along_rows(b, b.binary("divide", limit, largest), x.type));
  const Ssa nearest = b.unary("round_nearest_even", scaled);
  const Ssa kept = b.select(along_rows(b, counts, x.type), nearest, fill_like(b, x, 0));
  const Ssa scale =
      b.select(finite, b.binary("divide", largest, limit), fill_like(b, top, std::numeric_limits<double>::quiet_NaN()));
  return {b.convert(kept, DType::i8), scale};
}

std::vector<Ssa> contract_int8(Builder& b, const NodeCall& call) {
  const Type& y = call.results[0];
  if (y.num_elements() == 0 || call.operands[0].type.num_elements() == 0) return {b.constant(y, 0)};
  const QuantizedRows x = quantized(b, call.operands[0]);
  Builder::DotDims dims;
  dims.a_contract = {x.q.type.ndim() - 1};
  dims.b_contract = {1};
  const Ssa sum = b.convert(b.dot(x.q, call.operands[1], dims, DType::i32), DType::f32);
  const Ssa scale = b.binary("multiply", along_rows(b, x.scale, y), along_last(b, call.operands[2], y));
  return {b.binary("multiply", scale, sum)};
}

}  // namespace

std::vector<OpLowering> int8_lowerings() { return {{"contract_int8", contract_int8}}; }

}  // namespace systole::stablehlo
