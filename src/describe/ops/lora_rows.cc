// lora_rows: adds low-rank adapters (Hu et al., "LoRA", 2021, arXiv:2106.09685) to the result y of a projection of x,
// another adapter for each entry of the batch, as in Chen et al., "Punica", MLSys 2024. With k = which[b] - 1:
//
//   l[b, s, r] = Σ_i x[b, s, i] a[k, r, i]        z[b, s, o] = y[b, s, o] + Σ_r l[b, s, r] b[k, r, o]
//
// x may have several dims of inputs, such as heads; they count as one, i. So a product that gathers x over devices and
// its adapter read the same gathered x, and not one of them a reshape of it.
//
// An entry whose `which` is 0, or names no adapter, has the bits of y. The adapter's scale is part of b; adapters of
// lower rank have zeros in the last r. The law: z[b, s, :] depends on that row and its adapter only, not on the other
// rows, and has the same bits for any number of threads.
//
// Constraints: C1 x f32[b, s, i...], y f32[b, s, o]. C2 a f32[k, r, i], b f32[k, r, o], r at most 64. C3 which i32[b].
// Work: a multiplication and an addition per product. Entries without an adapter skip theirs.
// Sharding: b, s and o pass; i, r and k are replicated.

#include <array>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ir/served_adapters.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

bool is_f32(const Type& type) { return type.dtype == DType::f32 && type.ndim() == 3; }
bool has_inputs(const Type& x) { return x.dtype == DType::f32 && x.ndim() >= 3 && x.ndim() <= 5; }
std::int64_t num_inputs(const Type& x) { return num_elements(Shape(x.shape.begin() + 2, x.shape.end())); }

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 5 || !has_inputs(call.operand(0)) || !is_f32(call.operand(1)) ||
      call.operand(0).size(0) != call.operand(1).size(0) || call.operand(0).size(1) != call.operand(1).size(1))
    constraint("lora_rows_c1", "lora_rows takes x f32[b, s, i...], y f32[b, s, o], a, b and which");
  const Type &x = call.operand(0), &y = call.operand(1), &a = call.operand(2), &b = call.operand(3);
  if (!is_f32(a) || !is_f32(b) || a.size(2) != num_inputs(x) || b.size(2) != y.size(2) || a.size(0) != b.size(0) ||
      a.size(1) != b.size(1) || a.size(1) > kMostLoraRank)
    constraint("lora_rows_c2", "adapters {} and {} for x {} and y {}, of a rank of at most {}", to_string(a),
               to_string(b), to_string(x), to_string(y), kMostLoraRank);
  if (call.operand(4).dtype != DType::i32 || call.operand(4).shape != Shape{x.size(0)})
    constraint("lora_rows_c3", "which is {} for x {}", to_string(call.operand(4)), to_string(x));
  return {y};
}

// Of one row.
std::int64_t row_flops(const OpCall& call) {
  return 2 * call.operand(2).size(1) * (call.operand(2).size(2) + call.operand(1).size(2));
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  work.model_flops = call.operand(0).size(0) * call.operand(0).size(1) * row_flops(call);
  work.flops = work.model_flops;
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string inputs = std::string("uvw").substr(0, static_cast<std::size_t>(call.operand(0).ndim() - 2));
  return sharding_rule("bs" + inputs + ",bso,kri,kro,b->bso", "", "kri" + inputs);
}

// Row n of x and y, by adapter k.
void adapt_row(const ReferenceCall& call, std::int64_t n, std::int64_t k) {
  const TensorView &x = call.operands[0], &y = call.operands[1], &a = call.operands[2], &b = call.operands[3],
                   &z = call.results[0];
  const std::int64_t in = a.type.size(2), out = y.type.size(2), rank = a.type.size(1);
  std::vector<Scalar> low;
  for (std::int64_t r = 0; r < rank; ++r) {
    Scalar sum(0);
    for (std::int64_t i = 0; i < in; ++i) sum += x.at(n * in + i) * a.at((k * rank + r) * in + i);
    low.push_back(sum);
  }
  for (std::int64_t o = 0; o < out; ++o) {
    Scalar sum = y.at(n * out + o);
    for (std::int64_t r = 0; r < rank; ++r) sum += low[static_cast<std::size_t>(r)] * b.at((k * rank + r) * out + o);
    z.set(n * out + o, sum);
  }
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.operands[1], &a = call.operands[2], &z = call.results[0];
  const std::int64_t seq = x.type.size(1), out = y.type.size(2), adapters = a.type.size(0);
  const std::int64_t skipped = 2 * a.type.size(1) * (a.type.size(2) + out);
  for (std::int64_t n = 0; n < x.type.size(0) * seq; ++n) {
    const std::int64_t k = call.operands[4].integer(n / seq) - 1;
    if (k >= 0 && k < adapters) {
      adapt_row(call, n, k);
      continue;
    }
    for (std::int64_t o = 0; o < out; ++o) ops::copy_element(y, n * out + o, z, n * out + o);
    tally().skipped_flops += skipped;
  }
}

}  // namespace

OpDef ops::lora_rows_op() {
  OpDef op;
  op.name = "lora_rows";
  op.summary = "z[b] = y[b] + (x[b] a[k]^T) b[k] with k = which[b] - 1, or y[b] where there is none; arXiv:2106.09685";
  op.signature =
      "(x: f32[b, s, i...], y: f32[b, s, o], a: f32[k, r, i], b: f32[k, r, o], which: i32[b]) -> (z: like y)";
  op.infer = infer;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  op.in_place = {{0, 1}};
  return op;
}

Value lora_rows(Value x, Value y, Value a, Value b, Value which) {
  return x.graph->apply("lora_rows", std::array{x, y, a, b, which})[0];
}

}  // namespace systole
