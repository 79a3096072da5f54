// Collectives over a mesh axis of `parts` devices; every device runs the same node.
//
//   all_reduce          y = Σ (or max) of x over the axis
//   all_gather          y = the devices' x concatenated along `dim`
//   reduce_scatter      this device's part along `dim` of the sum (or max) of x
//   all_to_all          splits x along split_dim; part j goes to device j; concatenates received parts along concat_dim
//   collective_permute  y = x of the device `by` places before on the axis, cyclically
//
// Local rewrites insert them after differentiation. Their gradients are those of a loss that is summed over all
// devices.
// Constraints: collective C1 one operand, an axis with a name and parts ≥ 1. C2 kind is sum or max, and x has a number
// type. C3 dims are dims of x; parts divides the split dim.
// Work: none, because the algorithm decides which device adds what (ground/mesh). Sums of bf16 and f16 accumulate in
// f32.
// The reference runs one device: the identity for one part, an error for more.

#include <array>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

std::int64_t check_collective(const OpCall& call) {
  if (call.num_operands() != 1)
    constraint("collective_c1", "{} takes one operand, got {}", call.op.name, call.num_operands());
  const std::int64_t parts = call.attrs.get_int("parts");
  if (call.attrs.get_string("axis").empty() || parts < 1) {
    constraint("collective_c1", "{} over axis '{}' of {} parts", call.op.name, call.attrs.get_string("axis"), parts);
  }
  if (call.attrs.find("kind") != nullptr) {
    const std::string& kind = call.attrs.get_string("kind");
    if (kind != "sum" && kind != "max")
      constraint("collective_c2", "{} has no kind '{}': sum or max", call.op.name, kind);
    if (call.operand(0).dtype == DType::boolean) constraint("collective_c2", "{} of bools", call.op.name);
  }
  return parts;
}

std::size_t dim_of(const OpCall& call, const char* name) {
  const std::int64_t dim = call.attrs.get_int(name);
  if (dim < 0 || dim >= call.operand(0).ndim())
    constraint("collective_c3", "{}: {} {} of {}", call.op.name, name, dim, to_string(call.operand(0)));
  return static_cast<std::size_t>(dim);
}

void cut(const OpCall& call, Type& type, std::size_t dim, std::int64_t parts) {
  if (type.shape[dim] % parts != 0) {
    constraint("collective_c3", "{}: dim {} of {} in {} parts", call.op.name, dim, to_string(call.operand(0)), parts);
  }
  type.shape[dim] /= parts;
}

std::vector<Type> infer(const OpCall& call) {
  const std::int64_t parts = check_collective(call);
  const std::string_view op = call.op.name;
  Type y = call.operand(0);
  if (op == "all_gather") y.shape[dim_of(call, "dim")] *= parts;
  if (op == "reduce_scatter") cut(call, y, dim_of(call, "dim"), parts);
  if (op == "all_to_all") {
    cut(call, y, dim_of(call, "split_dim"), parts);
    y.shape[dim_of(call, "concat_dim")] *= parts;
  }
  return {y};
}

void only_sums(GradientCall& call, const char* op) {
  if (call.attrs().get_string("kind") != "sum") {
    fail(error(ErrorKind::unsupported, "the gradient of {} of kind '{}' does not exist", op,
               call.attrs().get_string("kind")));
  }
}

ShardingRule whole(const OpCall& call) {
  ShardingRule rule;
  rule.operands = {std::vector<int>(call.operand(0).shape.size(), -1)};
  rule.results = rule.operands;
  return rule;
}

OpDef collective(const char* name, const char* summary, std::vector<OpAttr> attrs) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.signature = "(x: any[...]) -> (y: x's type)";
  op.attrs = {{"axis", "string", "of the mesh"}, {"parts", "int", "devices along the axis"}};
  op.attrs.insert(op.attrs.end(), attrs.begin(), attrs.end());
  op.infer = infer;
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.sharding = whole;
  op.reference = [name](const ReferenceCall& call) {
    if (call.attrs.get_int("parts") != 1) {
      fail(error(ErrorKind::unsupported,
                 "{} over '{}' of {} parts needs as many devices; the reference evaluator is one", name,
                 call.attrs.get_string("axis"), call.attrs.get_int("parts")));
    }
    for (std::int64_t i = 0; i < call.results[0].type.num_elements(); ++i)
      ops::copy_element(call.operands[0], i, call.results[0], i);
  };
  return op;
}

OpAttr kind_attr() { return {"kind", "string", "sum or max"}; }

Value one(std::string_view op, Value x, std::string_view axis, std::int64_t parts, Attrs attrs) {
  attrs.set("axis", std::string(axis));
  attrs.set("parts", parts);
  return x.graph->apply(op, std::array{x}, std::move(attrs))[0];
}

}  // namespace

namespace ops {

std::vector<OpDef> collective_ops() {
  OpDef reduce = collective("all_reduce", "y = sum or max of x over the axis", {kind_attr()});
  reduce.in_place = {{0, 0}};
  reduce.gradient = [](GradientCall& call) -> Gradients {
    only_sums(call, "all_reduce");
    return {all_reduce(*call.cotangent(0), call.attrs().get_string("axis"), call.attrs().get_int("parts"))};
  };
  OpDef gather = collective("all_gather", "the devices' x, concatenated along `dim`", {{"dim", "int", "that grows"}});
  gather.gradient = [](GradientCall& call) -> Gradients {
    return {reduce_scatter(*call.cotangent(0), call.attrs().get_string("axis"), call.attrs().get_int("parts"),
                           static_cast<int>(call.attrs().get_int("dim")))};
  };
  OpDef scatter = collective("reduce_scatter", "this device's part along `dim` of the sum or max of x",
                             {{"dim", "int", "that is cut"}, kind_attr()});
  scatter.gradient = [](GradientCall& call) -> Gradients {
    only_sums(call, "reduce_scatter");
    return {all_gather(*call.cotangent(0), call.attrs().get_string("axis"), call.attrs().get_int("parts"),
                       static_cast<int>(call.attrs().get_int("dim")))};
  };
  OpDef exchange = collective(
      "all_to_all", "x split along split_dim, part j to device j; received parts are concatenated along concat_dim",
      {{"split_dim", "int", "that is cut"}, {"concat_dim", "int", "that grows"}});
  exchange.gradient = [](GradientCall& call) -> Gradients {
    return {all_to_all(*call.cotangent(0), call.attrs().get_string("axis"), call.attrs().get_int("parts"),
                       static_cast<int>(call.attrs().get_int("concat_dim")),
                       static_cast<int>(call.attrs().get_int("split_dim")))};
  };
  OpDef permute = collective("collective_permute", "y = x of the device `by` places before this one on the axis",
                             {{"by", "int", "places on the axis, of either sign, round the end"}});
  permute.gradient = [](GradientCall& call) -> Gradients {
    return {collective_permute(*call.cotangent(0), call.attrs().get_string("axis"), call.attrs().get_int("parts"),
                               -call.attrs().get_int("by"))};
  };
  return {reduce, gather, scatter, exchange, permute};
}

}  // namespace ops

Value all_reduce(Value x, std::string_view axis, std::int64_t parts, std::string_view kind) {
  return one("all_reduce", x, axis, parts, {{"kind", std::string(kind)}});
}
Value all_gather(Value x, std::string_view axis, std::int64_t parts, int dim) {
  return one("all_gather", x, axis, parts, {{"dim", std::int64_t{dim}}});
}
Value reduce_scatter(Value x, std::string_view axis, std::int64_t parts, int dim, std::string_view kind) {
  return one("reduce_scatter", x, axis, parts, {{"dim", std::int64_t{dim}}, {"kind", std::string(kind)}});
}
Value all_to_all(Value x, std::string_view axis, std::int64_t parts, int split_dim, int concat_dim) {
  return one("all_to_all", x, axis, parts,
             {{"split_dim", std::int64_t{split_dim}}, {"concat_dim", std::int64_t{concat_dim}}});
}
Value collective_permute(Value x, std::string_view axis, std::int64_t parts, std::int64_t by) {
  return one("collective_permute", x, axis, parts, {{"by", by}});
}

}  // namespace systole
