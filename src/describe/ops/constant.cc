// constant: y = value everywhere. iota: y counts 0, 1, 2, … along `dim`.
//
// Constraints: constant C1 the attributes give a type (type_attrs.h). C2 the dtype holds the value: whole and in range
// for integers, 0 or 1 for bool (a real is rounded). iota C1 the attributes give a type. C2 `dim` is one of its dims,
// and the dtype is a number type.
// Both have no operands and are elementwise: a fused kernel makes them in registers.
// Sharding: a local rewrite shards iota's dim and adds the offset.

#include <cmath>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/type_attrs.h"

namespace systole {
namespace {

using ops::at;

std::vector<OpAttr> type_attrs_and(OpAttr last) {
  std::vector<OpAttr> attrs = ops::shape_attrs();
  attrs.insert(attrs.begin(), {"dtype", "dtype", "of the result"});
  attrs.push_back(last);
  return attrs;
}

std::vector<Type> infer_constant(const OpCall& call) {
  const Type type = ops::shaped_as(call.attrs, call.attrs.get_dtype("dtype"), "constant_c1");
  if (call.num_operands() != 0) constraint("constant_c1", "constant takes no operands, got {}", call.num_operands());
  const double value = call.attrs.get_double("value");
  if (!is_float(type.dtype) && rounded(type.dtype, value) != value) {
    constraint("constant_c2", "{} is not a value of {}", value, name_of(type.dtype));
  }
  return {type};
}

std::vector<Type> infer_iota(const OpCall& call) {
  const Type type = ops::shaped_as(call.attrs, call.attrs.get_dtype("dtype"), "iota_c1");
  if (call.num_operands() != 0) constraint("iota_c1", "iota takes no operands, got {}", call.num_operands());
  const std::int64_t dim = call.attrs.get_int("dim");
  if (dim < 0 || dim >= type.ndim()) constraint("iota_c2", "dim {} of {}", dim, to_string(type));
  if (type.dtype == DType::boolean) constraint("iota_c2", "bools do not count");
  return {type};
}

ShardingRule rule_without_operands(int ndim, const std::string& local = "") {
  ShardingRule rule = sharding_rule("->" + ops::letters(ndim), "", "", local);
  rule.operands.clear();
  return rule;
}

Graph iota_rewrite(const OpCall& local, int, std::string_view, std::int64_t) {
  Graph graph("iota");
  const Value offset = graph.input("offset", Type(DType::i64, {}));
  const Value here = graph.apply(local.op, {}, local.attrs)[0];
  graph.output("y", add(here, broadcast_scalar(cast(offset, here.dtype()), here.type())));
  return graph;
}

OpDef filler(const char* name, const char* summary, const char* signature, OpAttr last) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.signature = signature;
  op.attrs = type_attrs_and(last);
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.local_attrs = [](const Attrs& whole, std::span<const Type> local) {
    return ops::with_shape(whole, local[0].shape);
  };
  op.elementwise = true;
  op.cheap = true;
  return op;
}

}  // namespace

namespace ops {

std::vector<OpDef> constant_ops() {
  OpDef constant = filler("constant", "y = value", "() -> (y: any[...])", {"value", "double", "of every element"});
  constant.infer = infer_constant;
  constant.sharding = [](const OpCall& call) {
    return rule_without_operands(static_cast<int>(call.attrs.get_ints("shape").size()));
  };
  constant.reference = [](const ReferenceCall& call) {
    const Scalar value(call.attrs.get_double("value"));
    for (std::int64_t i = 0; i < call.results[0].type.num_elements(); ++i) call.results[0].set(i, value);
  };

  OpDef iota =
      filler("iota", "y = index along `dim`", "() -> (y: number[...])", {"dim", "int", "along which it counts"});
  iota.infer = infer_iota;
  iota.sharding = [](const OpCall& call) {
    const int ndim = static_cast<int>(call.attrs.get_ints("shape").size());
    return rule_without_operands(ndim, std::string(1, letter(static_cast<int>(call.attrs.get_int("dim")))));
  };
  iota.local_rewrite = iota_rewrite;
  iota.reference = [](const ReferenceCall& call) {
    const int dim = static_cast<int>(call.attrs.get_int("dim"));
    std::int64_t i = 0;
    for_each_index(call.results[0].type.shape,
                   [&](const Shape& index) { call.results[0].set(i++, Scalar(static_cast<double>(at(index, dim)))); });
  };
  return {constant, iota};
}

}  // namespace ops

Value constant(Graph& graph, const Type& type, double value) {
  Attrs attrs{{"value", value}};
  ops::set_type(attrs, type);
  return graph.apply("constant", {}, std::move(attrs))[0];
}

Value iota(Graph& graph, const Type& type, int dim) {
  Attrs attrs{{"dim", std::int64_t{dim}}};
  ops::set_type(attrs, type);
  return graph.apply("iota", {}, std::move(attrs))[0];
}

Value full_like(Value x, double value) { return constant(*x.graph, x.type(), value); }
Value scale(Value x, double factor) { return mul(x, full_like(x, factor)); }

}  // namespace systole
