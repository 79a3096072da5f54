#include "predict/perf/op_time.h"

#include <algorithm>
#include <limits>

#include "describe/graph/collective_call.h"
#include "describe/graph/passes/rewrite.h"
#include "describe/graph/work.h"
#include "predict/perf/reuse.h"

namespace systole {
namespace {

struct Row {
  std::string_view op;
  OpClass op_class;
};
// Ops that are not elementwise; those are a class of their own by declaration.
constexpr Row kRows[] = {
    {"contract", OpClass::contraction},
    {"attention", OpClass::attention},
    {"attention_grad", OpClass::attention},
    {"embedding", OpClass::embedding},
    {"embedding_grad", OpClass::embedding},
    {"gather_rows", OpClass::embedding},
    {"scatter_rows", OpClass::embedding},
    {"top_k", OpClass::elementwise},
    {"route", OpClass::movement},
    {"adamw", OpClass::optimizer},
    {"sgd", OpClass::optimizer},
    {"all_reduce", OpClass::collective},
    {"all_gather", OpClass::collective},
    {"reduce_scatter", OpClass::collective},
    {"all_to_all", OpClass::collective},
    {"collective_permute", OpClass::collective},
    {"fusion", OpClass::elementwise},
    {"cast", OpClass::elementwise},
    {"stochastic_round", OpClass::elementwise},
    {"dropout", OpClass::elementwise},
    {"softmax", OpClass::elementwise},
    {"cross_entropy", OpClass::elementwise},
    {"cross_entropy_grad", OpClass::elementwise},
    {"layer_norm", OpClass::elementwise},
    {"layer_norm_grad", OpClass::elementwise},
    {"rms_norm", OpClass::elementwise},
    {"rms_norm_grad", OpClass::elementwise},
    {"rotary", OpClass::elementwise},
    {"reduce_sum", OpClass::elementwise},
    {"reduce_max", OpClass::elementwise},
    {"reduce_min", OpClass::elementwise},
    {"sum_of_squares", OpClass::elementwise},
    {"constant", OpClass::movement},
    {"iota", OpClass::movement},
    {"broadcast", OpClass::movement},
    {"reshape", OpClass::movement},
    {"transpose", OpClass::movement},
    {"slice", OpClass::movement},
    {"concatenate", OpClass::movement},
    {"pad", OpClass::movement},
    {"copy", OpClass::movement},
    {"take_row", OpClass::movement},
    {"take_part", OpClass::movement},
    {"send", OpClass::collective},
    {"receive", OpClass::collective},
    {"cache_write", OpClass::movement},
};

// Ops on an element that a chain does for each of its own: broadcasts and constants are part of a load.
std::int64_t chain_steps(const GraphNode& node) {
  if (!is(node, "fusion")) return 1;
  const auto counts = [](const GraphNode& inner) { return !is(inner, "broadcast") && !is(inner, "constant"); };
  const std::vector<GraphNode>& nodes = node.regions[0].nodes();
  return std::max<std::int64_t>(1, std::count_if(nodes.begin(), nodes.end(), counts));
}

Seconds kernel_time(const Graph& graph, const GraphNode& node, const Work& work, Seconds moving,
                    const MachineSpeed& speed) {
  const DType dtype = node.operands.empty() ? graph.type(node.results[0]).dtype : graph.type(node.operands[0]).dtype;
  const Flops flops(work.flops), elementary(work.transcendentals);
  switch (class_of(*node.op)) {
    case OpClass::contraction: return flops / contraction_rate(speed, dtype) + moving;
    case OpClass::attention: {
      const AttentionSpeed rates = attention_speed(speed, dtype, is(node, "attention_grad"));
      return flops / rates.products + elementary / rates.elementary;
    }
    case OpClass::elementwise: {
      const Flops steps(chain_steps(node) * graph.type(node.results[0]).num_elements());
      const bool chain = node.op->elementwise || is(node, "fusion");
      return (chain ? steps / speed.chain : flops / speed.kernel) + elementary / speed.elementary + moving;
    }
    default: return std::max(flops / speed.kernel + elementary / speed.elementary, moving);
  }
}

}  // namespace

const char* name_of(OpClass op_class) {
  static constexpr const char* kNames[kNumOpClasses] = {"contraction", "attention", "elementwise", "embedding",
                                                        "optimizer",   "movement",  "collective"};
  return kNames[static_cast<std::size_t>(op_class)];
}

OpClass class_of(const OpDef& op) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == op.name; });
  if (row != std::end(kRows)) return row->op_class;
  CHECK(op.elementwise, "op '{}' has no class in predict/perf/op_time.cc", op.name);
  return OpClass::elementwise;
}

CollectiveTime collective_time(const Graph& graph, const GraphNode& node, const MachineSpeed& speed) {
  const auto need_link = [&] {
    if (speed.link) return;
    fail(error(ErrorKind::not_found, "'{}' has no link between ranks, over which {} could be timed", speed.name,
               node.op->name));
  };
  if (is_transfer(node)) {  // timed where it is received
    const TransferCall call = transfer_call(graph, node);
    if (call.sends) return {};
    need_link();
    return {speed.link->latency + call.bytes() / speed.link->bandwidth, speed.link->latency};
  }
  const CollectiveCall call = collective_call(graph, node);
  if (call.parts == 1) return {};
  need_link();
  const std::int64_t whole =
      bytes_of(call.dtype, call.shape).count() * (call.kind == CollectiveKind::all_gather ? call.parts : 1);
  const Collective collective{call.kind, {call.parts}, Bytes(whole), Bytes(size_of(call.dtype)), call.by};
  const LinkCost waits{speed.link->latency, BytesPerSecond(std::numeric_limits<double>::infinity())};
  return {cost_of(collective, call.algorithm, std::span(&*speed.link, 1)),
          cost_of(collective, call.algorithm, std::span(&waits, 1))};
}

Seconds TimeByClass::total() const {
  Seconds sum;
  for (const Seconds s : seconds_) sum += s;
  return sum;
}

TimeByClass& TimeByClass::operator+=(const TimeByClass& other) {
  for (std::size_t i = 0; i < seconds_.size(); ++i) seconds_[i] += other.seconds_[i];
  return *this;
}

TimeByClass TimeByClass::operator*(double times) const {
  TimeByClass result = *this;
  for (Seconds& s : result.seconds_) s = s * times;
  return result;
}

Seconds op_time(const Graph& graph, const GraphNode& node, const MachineSpeed& speed) {
  if (is(node, "repeat")) {
    const Graph& body = node.regions[0];
    return graph_time(body, speed, touched_by(body)).total() * static_cast<double>(node.attrs.get_int("count"));
  }
  if (node.op->view) return {};
  if (class_of(*node.op) == OpClass::collective) return collective_time(graph, node, speed).total;
  const Work work = work_of(graph, node);
  const Bytes bytes = work.read + work.written;
  const bool update = class_of(*node.op) == OpClass::optimizer;
  return kernel_time(graph, node, work, bytes / bandwidth_for(speed, bytes, update), speed) + speed.call;
}

namespace {

// Carries lie on top of the stack; slices were touched as long ago as the operands that they are of; what all
// iterations share, an iteration ago.
ReuseStack stack_of_body(const GraphNode& repeat, const MachineSpeed& speed, Bytes ago) {
  const Graph& body = repeat.regions[0];
  const auto carries = static_cast<std::size_t>(repeat.attrs.get_int("carries")),
             stacked = static_cast<std::size_t>(repeat.attrs.get_int("stacked"));
  ReuseStack stack(body, speed, ago);
  const Bytes iteration = std::min(ago, touched_by(body));
  for (std::size_t i = carries + stacked; i < body.inputs().size(); ++i)
    stack.set_ago(body.inputs()[i].value, iteration);
  for (std::size_t i = 0; i < carries; ++i) {
    stack.set_ago(body.outputs()[i].value, Bytes());
    stack.touch(body.inputs()[i].value, body.type(body.inputs()[i].value).bytes());
  }
  return stack;
}

void each_kernel(const Graph& graph, const MachineSpeed& speed, Bytes ago, ReuseStack stack, double runs,
                 const KernelTime& told) {
  for (const GraphNode& node : graph.nodes()) {
    if (is(node, "repeat")) {
      const auto count = static_cast<double>(node.attrs.get_int("count"));
      each_kernel(node.regions[0], speed, ago, stack_of_body(node, speed, ago), runs * count, told);
      for (const ValueId id : node.operands) stack.touch(id, graph.type(id).bytes());
      for (const ValueId id : node.results) stack.touch(id, graph.type(id).bytes());
    } else if (class_of(*node.op) == OpClass::collective) {
      told(node, collective_time(graph, node, speed).total, runs);
    } else if (!node.op->view) {
      const Work work = work_of(graph, node);
      told(node,
           kernel_time(graph, node, work, stack.moving(node, work, class_of(*node.op) == OpClass::optimizer), speed) +
               speed.call,
           runs);
    }
  }
}

}  // namespace

void each_kernel(const Graph& graph, const MachineSpeed& speed, Bytes ago, const KernelTime& told) {
  each_kernel(graph, speed, ago, ReuseStack(graph, speed, ago), 1, told);
}

TimeByClass graph_time(const Graph& graph, const MachineSpeed& speed, Bytes ago) {
  TimeByClass time;
  each_kernel(graph, speed, ago,
              [&](const GraphNode& node, Seconds one, double runs) { time[class_of(*node.op)] += one * runs; });
  return time;
}

}  // namespace systole
