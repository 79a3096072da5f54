// contract_int8 (describe/ops/contract_int8.cc), in the formula's order of operations. The product
// is a dot of i8 with sums in i32, which GPUs and TPUs have as an instruction.

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

std::vector<Ssa> contract_int8(Builder& b, const NodeCall& call) {
  const Type& y = call.results[0];
  if (y.num_elements() == 0 || call.operands[0].type.num_elements() == 0) return {b.constant(y, 0)};
  const QuantizedRows x = quantized_rows(b, call.operands[0]);
  Builder::DotDims dims;
  dims.a_contract = {x.q.type.ndim() - 1};
  dims.b_contract = {1};
  const Ssa sum = b.convert(b.dot(b.convert(x.q, DType::i8), call.operands[1], dims, DType::i32), DType::f32);
  const Ssa scale = b.binary("multiply", along_rows(b, x.scale, y), along_last(b, call.operands[2], y));
  return {b.binary("multiply", scale, sum)};
}

}  // namespace

std::vector<OpLowering> int8_lowerings() { return {{"contract_int8", contract_int8}}; }

}  // namespace systole::stablehlo
