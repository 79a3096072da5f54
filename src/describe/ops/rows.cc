// gather_rows: rows of x[B…, n, e] at rows i32[B…, M…], each from its own batch entry: y[B…, M…, e]. scatter_rows is
// its transpose: adds the rows of y[B…, M…, e] at the given indices, into n rows per batch entry. B… are the leading
// dims that both have, all dims of x except its last two.
//
// A row outside [0, n) gives zeros and adds nothing. The scatter adds in the order of the rows, for any number of
// threads, so that sums are reproducible. Mixture-of-experts layers move tokens with these ops
// (docs/concepts/experts.md).
//
// Constraints: C1 gather_rows takes x of a float type and at least two dims. C2 rows i32, with x's leading dims. C3
// scatter_rows takes y of a float type and rows i32 of y's leading dims; the first `batch` of these are B…. C4 size at
// least 1, dtype a float type.
// Work: gather_rows counts no FLOPs and reads as many rows of x as it gives, at most all. scatter_rows counts one
// addition per element of y; those of rows outside are skipped.
// Sharding: B…, M… and e pass; in scatter_rows sharded M… give partial sums; the n rows are replicated.

#include <algorithm>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/routing.h"

namespace systole {
namespace {

using ops::at;

bool begins_with(const Shape& shape, const Shape& head, int dims) {
  return static_cast<int>(shape.size()) >= dims && static_cast<int>(head.size()) >= dims &&
         std::equal(head.begin(), head.begin() + dims, shape.begin());
}

std::vector<Type> infer_gather(const OpCall& call) {
  if (call.num_operands() != 2 || call.operand(0).ndim() < 2 || !is_float(call.operand(0).dtype))
    constraint("rows_c1", "gather_rows takes x[..., n, e] of a float type, and rows");
  const Type &x = call.operand(0), &rows = call.operand(1);
  if (rows.dtype != DType::i32 || !begins_with(rows.shape, x.shape, x.ndim() - 2))
    constraint("rows_c2", "rows {} of x {}", to_string(rows), to_string(x));
  Type y = rows.with(x.dtype);
  y.add_dim(ops::last_size(x), x.name(x.ndim() - 1));
  return {y};
}

std::vector<Type> infer_scatter(const OpCall& call) {
  const std::int64_t batch = call.attrs.get_int("batch"), size = call.attrs.get_int("size");
  if (call.num_operands() != 2 || !is_float(call.operand(0).dtype) || call.operand(1).dtype != DType::i32 ||
      call.operand(0).ndim() != call.operand(1).ndim() + 1 || batch < 0 || batch > call.operand(1).ndim() ||
      !begins_with(call.operand(0).shape, call.operand(1).shape, call.operand(1).ndim()))
    constraint("rows_c3",
               "scatter_rows takes y[..., e] of a float type and rows i32[...], of which `batch` are shared");
  const Type& y = call.operand(0);
  const DType dtype = call.attrs.get_dtype("dtype");
  if (size < 1 || !is_float(dtype)) constraint("rows_c4", "{} rows of {}", size, name_of(dtype));
  Type x(dtype, {}, {});
  for (int dim = 0; dim < batch; ++dim) x.add_dim(y.size(dim), y.name(dim));
  x.add_dim(size, call.attrs.get_string("name"));
  x.add_dim(ops::last_size(y), y.name(y.ndim() - 1));
  return {x};
}

Gradients gradient_gather(GradientCall& call) {
  const Type& x = call.operand_type(0);
  const int n = x.ndim() - 2;
  const Value sums =
      scatter_rows(*call.cotangent(0), call.operand(1), n, x.size(n), ops::statistic_dtype(x.dtype), x.name(n));
  return {cast(sums, x.dtype), std::nullopt};
}

Gradients gradient_scatter(GradientCall& call) {
  return {gather_rows(cast(*call.cotangent(0), call.operand_type(0).dtype), call.operand(1)), std::nullopt};
}

Work work_gather(const OpCall& call, std::span<const Type> results) {
  Work work;
  work.read = call.operand(1).bytes() + std::min(call.operand(0).bytes(), results[0].bytes());
  work.written = results[0].bytes();
  return work;
}

Work work_scatter(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  work.flops = call.operand(0).num_elements();
  return work;
}

// The letters of x and of rows, "abY" and "abcd": ab are shared, Y is the rows of x.
ShardingRule sharding_gather(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(1).ndim());
  const std::string batch = rows.substr(0, static_cast<std::size_t>(call.operand(0).ndim() - 2));
  return sharding_rule(batch + "YZ," + rows + "->" + rows + "Z", "", "Y");
}

ShardingRule sharding_scatter(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(1).ndim());
  const auto batch = static_cast<std::size_t>(call.attrs.get_int("batch"));
  return sharding_rule(rows + "Z," + rows + "->" + rows.substr(0, batch) + "YZ", rows.substr(batch), "Y");
}

void reference_gather(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &rows = call.operands[1], &y = call.results[0];
  const int ndim = x.type.ndim();
  const std::int64_t n = x.type.size(ndim - 2), e = x.type.size(ndim - 1), count = rows.type.num_elements();
  const std::int64_t batches = num_elements(Shape(x.type.shape.begin(), x.type.shape.end() - 2));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows.integer(i), first = i / (count / batches) * n;
    for (std::int64_t j = 0; j < e; ++j)
      y.set(i * e + j, row >= 0 && row < n ? x.at((first + row) * e + j) : Scalar(0));
  }
  tally().untouched_bytes += std::max<std::int64_t>(0, x.type.bytes().count() - y.type.bytes().count());
}

void reference_scatter(const ReferenceCall& call) {
  const TensorView &y = call.operands[0], &rows = call.operands[1], &x = call.results[0];
  const int ndim = x.type.ndim();
  const std::int64_t n = x.type.size(ndim - 2), e = x.type.size(ndim - 1), count = rows.type.num_elements();
  const std::int64_t batches = num_elements(Shape(x.type.shape.begin(), x.type.shape.end() - 2));
  std::vector<Scalar> sums(static_cast<std::size_t>(x.type.num_elements()));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows.integer(i), first = i / (count / batches) * n;
    if (row < 0 || row >= n) {
      tally().skipped_flops += e;
      continue;
    }
    for (std::int64_t j = 0; j < e; ++j) sums[static_cast<std::size_t>((first + row) * e + j)] += y.at(i * e + j);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) x.set(static_cast<std::int64_t>(i), sums[i]);
}

OpDef make_gather_rows() {
  OpDef op;
  op.name = "gather_rows";
  op.summary = "y[b, m] = x[b, rows[b, m]]; a row outside x gives zeros";
  op.signature = "(x: float[b..., n, e], rows: i32[b..., m...]) -> (y: like x[b..., m..., e])";
  op.infer = infer_gather;
  op.gradient = gradient_gather;
  op.work = work_gather;
  op.sharding = sharding_gather;
  op.reference = reference_gather;
  return op;
}

OpDef make_scatter_rows() {
  OpDef op;
  op.name = "scatter_rows";
  op.summary = "x[b, r] = sum of y[b, m] where rows[b, m] is r, in the order of m";
  op.signature = "(y: float[b..., m..., e], rows: i32[b..., m...]) -> (x: dtype[b..., size, e])";
  op.attrs = {{"batch", "int", "leading dims that x and y share"},
              {"size", "int", "rows of x"},
              {"dtype", "dtype", "type of the result"},
              {"name", "string", "name of the dim of x's rows"}};
  op.infer = infer_scatter;
  op.gradient = gradient_scatter;
  op.work = work_scatter;
  op.sharding = sharding_scatter;
  op.reference = reference_scatter;
  op.precision = PrecisionRule::f32;
  return op;
}

}  // namespace

std::vector<OpDef> ops::routing_ops() { return {top_k_op(), route_op(), make_gather_rows(), make_scatter_rows()}; }

Value gather_rows(Value x, Value rows) {
  const Value operands[] = {x, rows};
  return x.graph->apply("gather_rows", operands)[0];
}

Value scatter_rows(Value y, Value rows, int batch, std::int64_t size, DType dtype, const std::string& name) {
  const Value operands[] = {y, rows};
  return y.graph->apply(
      "scatter_rows", operands,
      {{"batch", std::int64_t{batch}}, {"size", size}, {"dtype", std::string(name_of(dtype))}, {"name", name}})[0];
}

}  // namespace systole
