// softmax over the last dim: y_i = e^(x_i - m) / Σ_j e^(x_j - m) with m = max x, so that nothing overflows (Milakov and
// Gimelshein, arXiv:1805.02867, section 2). A logit of -inf is a probability of 0. A row of -inf only gives zeros. +inf
// or NaN makes its row NaN, so that a divergence shows.
//
// Constraints: C1 one operand with at least one dim. C2 it has a float type.
// Work: a subtraction, exp, addition and division per element.
// Sharding: a local rewrite shards the row: max, all_reduce max, exp, sum, all_reduce sum, division.

#include <limits>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 1 || call.operand(0).ndim() < 1) {
    constraint("softmax_c1", "softmax takes one operand with at least one dim");
  }
  if (!is_float(call.operand(0).dtype)) constraint("softmax_c2", "softmax of {}", to_string(call.operand(0)));
  return {call.operand(0)};
}

// Broadcasts to x's shape, along all dims but the last.
Value along_rows(Value row, const Type& like) {
  std::vector<int> dims;
  for (int i = 0; i + 1 < like.ndim(); ++i) dims.push_back(i);
  return broadcast(row, like.with(row.dtype()), dims);
}

// dx = y (g - Σ g y).
Gradients gradient(GradientCall& call) {
  const Value y = call.result(0), g = *call.cotangent(0);
  const Type type = y.type();  // a copy: the graph grows below
  const int last[] = {type.ndim() - 1};
  return {mul(y, sub(g, along_rows(reduce_sum(mul(g, y), last), type)))};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  work.flops = 3 * results[0].num_elements();
  work.transcendentals = results[0].num_elements();
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string dims = ops::letters(call.operand(0).ndim());
  return sharding_rule(dims + "->" + dims, "", "", dims.substr(dims.size() - 1));
}

Graph local_rewrite(const OpCall& local, int, std::string_view axis, std::int64_t parts) {
  Graph graph("softmax");
  const Value x = graph.input("x", local.operand(0));
  graph.input("offset", Type(DType::i64, {}));
  const Type& type = local.operand(0);
  const int last[] = {type.ndim() - 1};
  const Value wide = cast(x, ops::statistic_dtype(type.dtype));
  const Value top = all_reduce(reduce_max(wide, last), axis, parts, "max");
  const Value shift = select(compare(top, full_like(top, -kInf), "eq"), full_like(top, 0), top);
  const Value e = exp(sub(wide, along_rows(shift, type)));
  const Value sum = all_reduce(reduce_sum(e, last), axis, parts);
  const Value divisor = select(compare(sum, full_like(sum, 0), "eq"), full_like(sum, 1), sum);
  graph.output("y", cast(div(e, along_rows(divisor, type)), type.dtype));
  return graph;
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const std::int64_t n = ops::last_size(x.type), rows = ops::rows_of(x.type);
  std::vector<Scalar> e(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < rows; ++row) {
    Scalar top(-kInf), sum(0);
    for (std::int64_t i = 0; i < n; ++i) top = max(top, x.at(row * n + i));
    const Scalar shift = top == Scalar(-kInf) ? Scalar(0) : top;
    for (std::int64_t i = 0; i < n; ++i) {
      e[static_cast<std::size_t>(i)] = exp(x.at(row * n + i) - shift);
      sum += e[static_cast<std::size_t>(i)];
    }
    const Scalar divisor = sum == Scalar(0) ? Scalar(1) : sum;
    for (std::int64_t i = 0; i < n; ++i) y.set(row * n + i, e[static_cast<std::size_t>(i)] / divisor);
  }
}

}  // namespace

OpDef ops::softmax_op() {
  OpDef op;
  op.name = "softmax";
  op.summary = "y_i = e^(x_i - max) / sum_j e^(x_j - max) over the last dim; arXiv:1805.02867";
  op.signature = "(x: float[..., n]) -> (y: like x)";
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.local_rewrite = local_rewrite;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  op.in_place = {{0, 0}};
  return op;
}

Value softmax(Value x) { return x.graph->apply("softmax", std::span(&x, 1))[0]; }

}  // namespace systole
