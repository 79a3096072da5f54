// repeat: runs a body `count` times with carried values, slices of stacked operands and shared operands; stacks the
// outputs of the iterations. It is the scan of functional languages (jax.lax.scan): a model of 96 layers stays a few
// dozen nodes.
//
// Operands (carries..., stacked..., shared...); body (carries..., slices..., shared...) -> (carries..., outputs...).
// Iteration i takes slice i (count - 1 - i with `reverse`) and writes its outputs at the same index.
// Constraints: C1 count ≥ 1 and the three numbers add up to the operands. C2 the body's inputs have the types of
// carries, slices and shared operands. C3 stacked operands have `count` on their outermost dim. C4 the body's first
// outputs have the types of the carries.
// autodiff builds the gradient (describe/autodiff/autodiff.h): a reversed repeat.

#include "describe/ir/evaluate.h"
#include "describe/ir/work.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

struct Parts {
  std::int64_t count;
  std::size_t carries, stacked, shared;
  bool reverse;
  explicit Parts(const Attrs& attrs)
      : count(attrs.get_int("count")),
        carries(static_cast<std::size_t>(attrs.get_int("carries"))),
        stacked(static_cast<std::size_t>(attrs.get_int("stacked"))),
        shared(static_cast<std::size_t>(attrs.get_int("shared"))),
        reverse(attrs.get_bool("reverse")) {}
};

std::vector<Type> infer(const OpCall& call) {
  const Parts parts(call.attrs);
  if (parts.count < 1 || parts.carries + parts.stacked + parts.shared != call.operands.size()) {
    constraint("repeat_c1", "count {}, {} + {} + {} of {} operands", parts.count, parts.carries, parts.stacked,
               parts.shared, call.operands.size());
  }
  if (call.regions.size() != 1) constraint("repeat_c1", "{} regions, not one body", call.regions.size());
  const Graph& body = call.regions[0];
  if (body.inputs().size() != call.operands.size())
    constraint("repeat_c2", "the body takes {} values, not {}", body.inputs().size(), call.operands.size());
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    Type wanted = call.operands[i];
    if (i >= parts.carries && i < parts.carries + parts.stacked) {
      if (wanted.ndim() == 0 || wanted.size(0) != parts.count)
        constraint("repeat_c3", "operand {} is {}, count {}", i, to_string(wanted), parts.count);
      wanted = slice_type(wanted);
    }
    const Type& given = body.type(body.inputs()[i].value);
    if (!(given == wanted))
      constraint("repeat_c2", "body input '{}' is {}, gets {}", body.inputs()[i].name, to_string(given),
                 to_string(wanted));
  }
  if (body.outputs().size() < parts.carries)
    constraint("repeat_c4", "the body gives {} values for {} carries", body.outputs().size(), parts.carries);
  std::vector<Type> results;
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    const Type& type = body.type(body.outputs()[i].value);
    if (i >= parts.carries) {
      results.push_back(stacked_type(type, parts.count, call.attrs.get_string("dim")));
    } else if (type == call.operands[i]) {
      results.push_back(call.operands[i]);
    } else {
      constraint("repeat_c4", "carry {} is {} and becomes {}", i, to_string(call.operands[i]), to_string(type));
    }
  }
  return results;
}

void reference(const ReferenceCall& call) {
  const Parts parts(call.attrs);
  const Graph& body = call.regions[0];
  std::vector<HostTensor> carried, next;
  for (std::size_t i = 0; i < parts.carries; ++i) {
    const TensorView& from = call.operands[i];
    carried.emplace_back(from.type.dtype, from.type.shape);
    std::copy_n(from.data, from.type.bytes().count(), carried.back().bytes().data());
  }
  next = carried;
  for (std::int64_t step = 0; step < parts.count; ++step) {
    const std::int64_t index = parts.reverse ? parts.count - 1 - step : step;
    auto slice_of = [&](const TensorView& stacked) {
      Type type = slice_type(stacked.type);
      return TensorView{type, stacked.data + index * type.bytes().count()};
    };
    std::vector<TensorView> in, out;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const TensorView& operand = call.operands[i];
      in.push_back(i < parts.carries                   ? view_of(carried[i], operand.type)
                   : i < parts.carries + parts.stacked ? slice_of(operand)
                                                       : operand);
    }
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      out.push_back(i < parts.carries ? view_of(next[i], call.results[i].type) : slice_of(call.results[i]));
    }
    evaluate_into(body, in, out);
    std::swap(carried, next);
  }
  for (std::size_t i = 0; i < parts.carries; ++i) {
    std::copy_n(carried[i].bytes().data(), carried[i].bytes().size(), call.results[i].data);
  }
}

}  // namespace

OpDef ops::repeat_op() {
  OpDef op;
  op.name = "repeat";
  op.summary = "count times the body, carries threaded through, outputs stacked; jax.lax.scan";
  op.signature = "(carries..., stacked..., shared...) { body } -> (carries..., outputs...)";
  op.attrs = {{"count", "int", "iterations"},
              {"carries", "int", "operands carried from iteration to iteration"},
              {"stacked", "int", "operands of which iteration i takes slice i"},
              {"shared", "int", "operands that every iteration takes whole"},
              {"dim", "string", "name of the outermost dim of stacked results"},
              {"reverse", "bool", "from the last index to the first"}};
  op.infer = infer;
  op.work = [](const OpCall& call, std::span<const Type>) {
    return work_of(call.regions[0]) * Parts(call.attrs).count;
  };
  op.sharding = [](const OpCall& call) {  // partitioning shards the body; the repeat itself is replicated
    ShardingRule rule;
    for (const Type& type : call.operands) rule.operands.emplace_back(type.shape.size(), -1);
    for (const Type& type : infer(call)) rule.results.emplace_back(type.shape.size(), -1);
    return rule;
  };
  op.reference = reference;
  return op;
}

Repeat repeat(Graph body, std::int64_t count, std::span<const Value> carries, std::span<const Value> stacked,
              std::span<const Value> shared, std::string_view dim, bool reverse) {
  std::vector<Value> operands(carries.begin(), carries.end());
  operands.insert(operands.end(), stacked.begin(), stacked.end());
  operands.insert(operands.end(), shared.begin(), shared.end());
  CHECK(!operands.empty(), "a repeat without operands");
  auto number = [](std::span<const Value> values) { return static_cast<std::int64_t>(values.size()); };
  Attrs attrs{{"count", count},           {"carries", number(carries)}, {"stacked", number(stacked)},
              {"shared", number(shared)}, {"dim", std::string(dim)},    {"reverse", reverse}};
  std::vector<Graph> regions;
  regions.push_back(std::move(body));
  Graph& graph = *operands[0].graph;
  const std::vector<Value> results = graph.apply("repeat", operands, std::move(attrs), std::move(regions));
  const auto split = results.begin() + static_cast<std::ptrdiff_t>(carries.size());
  return {{results.begin(), split}, {split, results.end()}};
}

}  // namespace systole
