// cross_entropy of integer labels over the last dim v, and its gradient.
//
//   lse = m + ln Σ_j e^(x_j - m), m = max x         loss = lse - x[label]
//   d loss / d x_j = e^(x_j - lse) - [j = label]     (x and lse give the softmax, which is not stored)
//
// No other value has the size of the logits: the gradient overwrites them in place. A label below 0 is ignored: loss 0,
// gradient 0; lse is still computed. A label at or past v lies in another shard of the vocabulary: loss = lse, and the
// gradient is the softmax. A logit of -inf is a probability of 0, and its label's loss is +inf. A row of -inf only has
// lse -inf. +inf or NaN makes its row NaN.
//
// Constraints: C1 logits have a float type and at least one dim; labels are given. C2 labels are i32 of the rows'
// shape. C3 lse and g of the gradient are f32 (f64 for f64) of the rows' shape.
// Work: forward, per element a subtraction, exp and an addition; per row a log, an addition and a subtraction.
// Gradient, per element two subtractions, exp and a multiplication.
// Sharding: a local rewrite shards the vocabulary: each shard computes its own loss and lse, then all_reduce combines
// them; only values of row size are exchanged.

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

Type check_logits_and_labels(const OpCall& call, int num_operands) {
  if (call.num_operands() != num_operands || call.operand(0).ndim() < 1 || !is_float(call.operand(0).dtype)) {
    constraint("cross_entropy_c1", "{} takes logits of a float type with at least one dim and {} more operands",
               call.op.name, num_operands - 1);
  }
  const Type& logits = call.operand(0);
  const Type row = ops::without_last(logits, ops::statistic_dtype(logits.dtype));
  if (!(call.operand(1) == row.with(DType::i32))) {
    constraint("cross_entropy_c2", "labels {} of logits {}", to_string(call.operand(1)), to_string(logits));
  }
  return row;
}

std::vector<Type> infer(const OpCall& call) {
  const Type row = check_logits_and_labels(call, 2);
  return {row, row};
}

std::vector<Type> infer_grad(const OpCall& call) {
  const Type row = check_logits_and_labels(call, 4);
  if (!(call.operand(2) == row) || !(call.operand(3) == row)) {
    constraint("cross_entropy_c3", "lse {} and g {} are not {}", to_string(call.operand(2)), to_string(call.operand(3)),
               to_string(row));
  }
  return {call.operand(0)};
}

// The gradient of lse is the softmax: the same as with a label past the vocabulary.
Gradients gradient(GradientCall& call) {
  Gradients d(2);
  const Value logits = call.operand(0), labels = call.operand(1), lse = call.result(1);
  if (const auto g = call.cotangent(0)) d[0] = cross_entropy_grad(logits, labels, lse, *g);
  if (const auto g = call.cotangent(1)) {
    const Value nowhere = full_like(labels, static_cast<double>(ops::last_size(logits.type())));
    const Value more = cross_entropy_grad(logits, nowhere, lse, *g);
    d[0] = d[0] ? add(*d[0], more) : more;
  }
  return d;
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  const std::int64_t rows = ops::rows_of(call.operand(0)), v = ops::last_size(call.operand(0));
  work.flops = rows * (2 * v + 2);
  work.transcendentals = rows * (v + 1);
  return work;
}

Work work_grad(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  work.flops = 3 * results[0].num_elements();
  work.transcendentals = results[0].num_elements();
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  return sharding_rule(rows + "v," + rows + "->" + rows + "," + rows, "", "", "v");
}

ShardingRule sharding_grad(const OpCall& call) {
  const std::string rows = ops::letters(call.operand(0).ndim() - 1);
  return sharding_rule(rows + "v," + rows + "," + rows + "," + rows + "->" + rows + "v", "", "", "v");
}

// Labels relative to this shard: ignored ones stay negative, those of other shards become v, past the end.
Value local_labels(Value labels, Value offset, std::int64_t v) {
  const Value zero = full_like(labels, 0), end = full_like(labels, static_cast<double>(v));
  const Type type = labels.type();  // a copy: the graph grows below
  const Value shifted = sub(labels, broadcast_scalar(cast(offset, DType::i32), type));
  const Value here = logical_and(compare(shifted, zero, "ge"), compare(shifted, end, "lt"));
  return select(compare(labels, zero, "lt"), labels, select(here, shifted, end));
}

Value equals(Value x, double value) { return compare(x, full_like(x, value), "eq"); }

// picked = the label's logit in its own shard, 0 in the others. A shard's loss is its lse minus picked.
Graph local_rewrite(const OpCall& local, int, std::string_view axis, std::int64_t parts) {
  Graph graph("cross_entropy");
  const Value logits = graph.input("logits", local.operand(0)), labels = graph.input("labels", local.operand(1));
  const Value offset = graph.input("offset", Type(DType::i64, {}));
  const std::int64_t v = ops::last_size(local.operand(0));
  const Value mine = local_labels(labels, offset, v);
  const CrossEntropy part = cross_entropy(logits, mine);
  const Value zero = full_like(part.lse, 0);
  const Value here = logical_and(compare(mine, full_like(mine, 0), "ge"),
                                 compare(mine, full_like(mine, static_cast<double>(v)), "lt"));
  const Value picked = all_reduce(select(here, sub(part.lse, part.loss), zero), axis, parts);
  const Value top = all_reduce(part.lse, axis, parts, "max");
  const Value shift = select(equals(top, -kInf), zero, top);
  const Value sum = all_reduce(exp(sub(part.lse, shift)), axis, parts);
  const Value lse = add(shift, log(sum));
  const Value ignored = compare(labels, full_like(labels, 0), "lt");
  const Value nothing = logical_and(equals(lse, -kInf), equals(picked, -kInf));
  graph.output("loss", select(ignored, zero, select(nothing, full_like(lse, kInf), sub(lse, picked))));
  graph.output("lse", lse);
  return graph;
}

Graph local_rewrite_grad(const OpCall& local, int, std::string_view, std::int64_t) {
  Graph graph("cross_entropy_grad");
  const Value logits = graph.input("logits", local.operand(0)), labels = graph.input("labels", local.operand(1));
  const Value lse = graph.input("lse", local.operand(2)), g = graph.input("g", local.operand(3));
  const Value offset = graph.input("offset", Type(DType::i64, {}));
  const Value mine = local_labels(labels, offset, ops::last_size(local.operand(0)));
  graph.output("dlogits", cross_entropy_grad(logits, mine, lse, g));
  return graph;
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &labels = call.operands[1];
  const std::int64_t v = ops::last_size(x.type), rows = ops::rows_of(x.type);
  for (std::int64_t row = 0; row < rows; ++row) {
    Scalar top(-kInf), sum(0);
    for (std::int64_t j = 0; j < v; ++j) top = max(top, x.at(row * v + j));
    const Scalar shift = top == Scalar(-kInf) ? Scalar(0) : top;
    for (std::int64_t j = 0; j < v; ++j) sum += exp(x.at(row * v + j) - shift);
    const Scalar lse = shift + log(sum);
    const std::int64_t label = labels.integer(row);
    const Scalar picked = label >= 0 && label < v ? x.at(row * v + label) : Scalar(0);
    const Scalar loss = lse - picked;
    const bool nothing = lse == Scalar(-kInf) && picked == Scalar(-kInf);  // lse - picked would be NaN
    call.results[0].set(row, label < 0 ? Scalar(0) : nothing ? Scalar(kInf) : loss);
    call.results[1].set(row, lse);
  }
}

void reference_grad(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &labels = call.operands[1], &lse = call.operands[2], &g = call.operands[3];
  const std::int64_t v = ops::last_size(x.type), rows = ops::rows_of(x.type);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = labels.integer(row);
    for (std::int64_t j = 0; j < v; ++j) {
      const Scalar p = exp(x.at(row * v + j) - lse.at(row));
      const Scalar probability = lse.at(row) == Scalar(-kInf) ? Scalar(0) : p;
      const Scalar dx = (probability - Scalar(j == label ? 1 : 0)) * g.at(row);
      call.results[0].set(row * v + j, label < 0 ? Scalar(0) : dx);
    }
  }
}

OpDef make_cross_entropy() {
  OpDef op;
  op.name = "cross_entropy";
  op.summary = "lse = ln sum_j e^x_j, loss = lse - x[label] over the last dim; a label below 0 is ignored (loss 0)";
  op.signature = "(logits: float[..., v], labels: i32[...]) -> (loss: f32[...], lse: f32[...])";
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.local_rewrite = local_rewrite;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  return op;
}

OpDef make_cross_entropy_grad() {
  OpDef op;
  op.name = "cross_entropy_grad";
  op.summary = "(e^(x - lse) - onehot(label)) g; zeros where the label is ignored; in place of the logits";
  op.signature = "(logits: float[..., v], labels: i32[...], lse: f32[...], g: f32[...]) -> (dlogits: like logits)";
  op.infer = infer_grad;
  op.work = work_grad;
  op.sharding = sharding_grad;
  op.local_rewrite = local_rewrite_grad;
  op.reference = reference_grad;
  op.precision = PrecisionRule::f32;
  op.in_place = {{0, 0}};
  return op;
}

}  // namespace

std::vector<OpDef> ops::cross_entropy_ops() { return {make_cross_entropy(), make_cross_entropy_grad()}; }

CrossEntropy cross_entropy(Value logits, Value labels) {
  const Value operands[] = {logits, labels};
  const std::vector<Value> results = logits.graph->apply("cross_entropy", operands);
  return {results[0], results[1]};
}

Value cross_entropy_grad(Value logits, Value labels, Value lse, Value g) {
  const Value operands[] = {logits, labels, lse, g};
  return logits.graph->apply("cross_entropy_grad", operands)[0];
}

}  // namespace systole
