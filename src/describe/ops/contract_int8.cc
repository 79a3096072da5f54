// contract_int8: x W^T with the weights in int8, and the lookup in a table of such weights. Symmetric quantisation, as
// in Dettmers et al., "LLM.int8()", 2022 (arXiv:2208.07339, section 2), with one scale per row of x and of w:
//
//   t = max |x[r, :]|    s = t / 127    q[i] = nearest even integer of x[r, i] * (127 / t)
//   y[r, n] = (s * scale[n]) * Σ_i q[i] w[n, i]
//
// The sum is exact; each other operation is one f32 operation, rounded to nearest, in the order of the formula, and
// none are fused. So the law: y[r, :] has the same bits on the reference and cpu backends, in any order of summation,
// for any number of threads, and whatever the other rows are. A row with t < 2^-100 counts as zeros. A row with a value
// that is not finite gives NaN.
//
// Constraints: contract_int8 C1 x f32[..., k]. C2 w i8[n, k], k at most 132,103, so that sums fit in i32. C3 scale
// f32[n]. embedding_int8 C1 table i8[v, e], scale f32[v]. C2 ids i32[...].
// Work: a multiplication and an addition per product; a multiplication per element of x, two divisions per row of x and
// two multiplications per result. All products are model FLOPs. embedding_int8: a multiplication per result; it reads
// as many rows of the table as there are ids, at most all; an id outside the table gives zeros.
// Sharding: rows of x and of w; k is whole, because a row of x is quantised by its maximum.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/quantized_row.h"
#include "ground/tensor/int8.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 3 || call.operand(0).ndim() < 1 || call.operand(0).dtype != DType::f32)
    constraint("contract_int8_c1", "contract_int8 takes x f32[..., k], w i8[n, k] and scale f32[n]");
  const Type &x = call.operand(0), &w = call.operand(1), &scale = call.operand(2);
  const std::int64_t k = ops::last_size(x);
  if (w.dtype != DType::i8 || w.ndim() != 2 || w.size(1) != k || k > kMostInt8Products)
    constraint("contract_int8_c2", "w is {} for x {}, not i8[n, {}] with k at most {}", to_string(w), to_string(x), k,
               kMostInt8Products);
  if (scale.dtype != DType::f32 || scale.shape != Shape{w.size(0)})
    constraint("contract_int8_c3", "scale is {} for w {}", to_string(scale), to_string(w));
  Type y = ops::without_last(x, DType::f32);
  y.add_dim(w.size(0), w.name(0));
  return {y};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const Type& x = call.operand(0);
  work.model_flops = 2 * results[0].num_elements() * ops::last_size(x);
  work.flops = work.model_flops + x.num_elements() + 2 * ops::rows_of(x) + 2 * results[0].num_elements();
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  return sharding_rule(rows + "z,yz,y->" + rows + "y", "", "z");
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &w = call.operands[1], &scale = call.operands[2], &y = call.results[0];
  const std::int64_t k = ops::last_size(x.type), n = w.type.size(0), rows = ops::rows_of(x.type);
  for (std::int64_t r = 0; r < rows; ++r) {
    const ops::QuantizedRow row = ops::quantized_row(x, r * k, k);
    for (std::int64_t j = 0; j < n; ++j) {
      Scalar sum(0);  // exact
      for (std::int64_t i = 0; i < k; ++i) sum += row.q[static_cast<std::size_t>(i)] * w.at(j * k + i);
      y.set(r * n + j, ops::as_f32(row.scale * scale.at(j)) * ops::as_f32(sum));
    }
  }
}

std::vector<Type> infer_embedding(const OpCall& call) {
  if (call.num_operands() != 3 || call.operand(0).ndim() != 2 || call.operand(0).dtype != DType::i8 ||
      call.operand(1).dtype != DType::f32 || call.operand(1).shape != Shape{call.operand(0).size(0)})
    constraint("embedding_int8_c1", "embedding_int8 takes a table i8[v, e], a scale f32[v], and ids");
  const Type &table = call.operand(0), &ids = call.operand(2);
  if (ids.dtype != DType::i32) constraint("embedding_int8_c2", "ids are {}, not i32", to_string(ids));
  Type result = ids.with(DType::f32);
  result.add_dim(table.size(1), table.name(1));
  return {result};
}

Work work_embedding(const OpCall& call, std::span<const Type> results) {
  Work work;
  const Type &table = call.operand(0), &scale = call.operand(1), &ids = call.operand(2);
  const std::int64_t rows = std::min(table.size(0), ids.num_elements());
  work.read = ids.bytes() + Bytes(rows * (table.size(1) + size_of(scale.dtype)));
  work.written = results[0].bytes();
  work.flops = results[0].num_elements();
  return work;
}

ShardingRule sharding_embedding(const OpCall& call) {
  const std::string ids = ops::letters(call.operand(2).ndim());
  return sharding_rule("vz,v," + ids + "->" + ids + "z", "", "v");
}

void reference_embedding(const ReferenceCall& call) {
  const TensorView &table = call.operands[0], &scale = call.operands[1], &ids = call.operands[2], &y = call.results[0];
  const std::int64_t v = table.type.size(0), e = table.type.size(1), count = ids.type.num_elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = ids.integer(i);
    const bool known = id >= 0 && id < v;
    if (!known) tally().skipped_flops += e;
    for (std::int64_t j = 0; j < e; ++j) y.set(i * e + j, known ? scale.at(id) * table.at(id * e + j) : Scalar(0));
  }
  tally().untouched_bytes += std::max<std::int64_t>(0, v - count) * (e + size_of(scale.type.dtype));
}

OpDef make_contract_int8() {
  OpDef op;
  op.name = "contract_int8";
  op.summary =
      "y = x w^T in int8: rows of x quantised by their maximum, exact sums, times both scales; arXiv:2208.07339";
  op.signature = "(x: f32[..., k], w: i8[n, k], scale: f32[n]) -> (y: f32[..., n])";
  op.infer = infer;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  return op;
}

OpDef make_embedding_int8() {
  OpDef op;
  op.name = "embedding_int8";
  op.summary = "y[...] = scale[ids[...]] table[ids[...]]; an id outside the table gives zeros";
  op.signature = "(table: i8[v, e], scale: f32[v], ids: i32[...]) -> (y: f32[..., e])";
  op.infer = infer_embedding;
  op.work = work_embedding;
  op.sharding = sharding_embedding;
  op.reference = reference_embedding;
  op.precision = PrecisionRule::f32;
  return op;
}

}  // namespace

std::vector<OpDef> ops::int8_ops() { return {make_contract_int8(), make_embedding_int8()}; }

Value contract_int8(Value x, Value w, Value scale) {
  return x.graph->apply("contract_int8", std::array{x, w, scale})[0];
}

Value embedding_int8(Value table, Value scale, Value ids) {
  return table.graph->apply("embedding_int8", std::array{table, scale, ids})[0];
}

}  // namespace systole
