// contract_int4 (describe/ops/contract_int4.cc) by dequantisation: the quantised groups of x, as f32, times d q + m. The
// compiler fuses the unpacking into the product's operand; the order of f32 operations is its own.

#include <array>

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"
#include "ground/tensor/int4.h"

namespace systole::stablehlo {
namespace {

// x[..., k] with each group of 32 rounded to 127 steps of its largest value; NaN where a value is not finite.
Ssa in_steps(Builder& b, const Ssa& x) {
  Shape grouped = x.type.shape;
  grouped.back() /= kInt4Group;
  grouped.push_back(kInt4Group);
  const QuantizedRows p = quantized_rows(b, b.reshape(x, grouped));
  return b.reshape(b.binary("multiply", p.q, along_rows(b, p.scale, p.q.type)), x.type.shape);
}

// [panels, groups, 16] of d (part 0) or m (part 1) to [panels, 16, groups, 32], f32.
Ssa along_groups(Builder& b, const Ssa& scale, std::int64_t part, const Type& like) {
  const std::int64_t panels = scale.type.size(0), groups = scale.type.size(1);
  const Ssa one = b.slice(scale, std::array<std::int64_t, 3>{0, 0, part * kInt4Panel},
                          std::array<std::int64_t, 3>{panels, groups, (part + 1) * kInt4Panel});
  return b.broadcast(b.convert(one, DType::f32), like, std::array{0, 2, 1});
}

// w and scale as f32[n, k].
Ssa widened(Builder& b, const Ssa& w, const Ssa& scale) {
  const std::int64_t panels = w.type.size(0), groups = w.type.size(1);
  const Ssa bytes = b.reshape(w, {panels, groups, 4, kInt4Panel, 4, 1});
  const Ssa low = b.binary("and", bytes, b.integer(bytes.type, 15));
  const Ssa high = b.binary("shift_right_logical", bytes, b.integer(bytes.type, 4));
  // [panel, group, v, row, byte, half] to [panel, row, group, half, v, byte]: the elements in order.
  const Ssa ordered = b.transpose(b.concatenate(std::array{low, high}, 5), std::array{0, 3, 1, 5, 2, 4});
  const Ssa codes = b.convert(b.reshape(ordered, {panels, kInt4Panel, groups, kInt4Group}), DType::f32);
  const Ssa d = along_groups(b, scale, 0, codes.type), m = along_groups(b, scale, 1, codes.type);
  const Ssa wide = b.binary("add", b.binary("multiply", codes, d), m);
  return b.reshape(wide, {panels * kInt4Panel, groups * kInt4Group});
}

std::vector<Ssa> contract_int4(Builder& b, const NodeCall& call) {
  const Type& y = call.results[0];
  if (y.num_elements() == 0 || call.operands[0].type.num_elements() == 0) return {b.constant(y, 0)};
  const Ssa x = in_steps(b, call.operands[0]);
  Builder::DotDims dims;
  dims.a_contract = {x.type.ndim() - 1};
  dims.b_contract = {1};
  return {b.dot(x, widened(b, call.operands[1], call.operands[2]), dims, DType::f32)};
}

}  // namespace

std::vector<OpLowering> int4_lowerings() { return {{"contract_int4", contract_int4}}; }

}  // namespace systole::stablehlo
