#include "predict/perf/op_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "describe/ir/rewrite.h"
#include "describe/ir/work.h"
#include "describe/program/collective_call.h"
#include "predict/perf/kernel_seconds.h"
#include "predict/perf/product_dims.h"
#include "predict/perf/reuse.h"

namespace systole {
namespace {

struct Row {
  std::string_view op;
  OpClass op_class;
};
// Ops that are not elementwise; an op definition declares those that are.
constexpr Row kRows[] = {
    {"contract", OpClass::contraction},
    {"contract_int8", OpClass::contraction},
    {"contract_int4", OpClass::contraction},
    {"lora_rows", OpClass::elementwise},
    {"attention", OpClass::attention},
    {"attention_grad", OpClass::attention},
    {"paged_attention", OpClass::attention},
    {"embedding", OpClass::embedding},
    {"embedding_int8", OpClass::embedding},
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
    {"page_write", OpClass::movement},
};

// The time to move a node's bytes if `ago` bytes were touched since they were.
Seconds moving_after(Bytes ago, const Work& work, bool update, const MachineSpeed& speed) {
  return work.read / bandwidth_for(speed, ago, update ? Touch::update : Touch::read) +
         work.written / bandwidth_for(speed, ago, update ? Touch::update : Touch::write);
}

// Steps of a chain on each element, without loads and stores; broadcasts and constants are part of a load.
template <typename Fn>
void each_step(const Graph& graph, const GraphNode& node, const Fn& fn) {
  if (!is(node, "fusion")) return fn(graph, node);
  const Graph& region = node.regions[0];
  for (const GraphNode& inner : region.nodes()) {
    if (!is(inner, "broadcast") && !is(inner, "constant")) fn(region, inner);
  }
}

// The time to compute the elements of a chain with its operands in cache.
Seconds chain_time(const Graph& graph, const GraphNode& node, const Work& work, const MachineSpeed& speed) {
  const std::int64_t n = graph.type(node.results[0]).num_elements();
  const auto plain = speed.steps.find(DType::f32);
  if (plain == speed.steps.end()) {
    std::int64_t steps = 0;
    each_step(graph, node, [&](const Graph&, const GraphNode&) { ++steps; });
    return Flops(std::max<std::int64_t>(1, steps) * n) / speed.chain + Flops(work.transcendentals) / speed.elementary;
  }
  const double one = 1 / plain->second.count();  // seconds of a plain step per element
  double time = static_cast<double>(distinct(node.operands).size() + node.results.size()) * one;
  each_step(graph, node, [&](const Graph& in, const GraphNode& step) {
    const auto function = speed.functions.find(std::string_view(step.op->name));
    const auto rounded = speed.steps.find(in.type(step.results[0]).dtype);
    const double rounds = rounded == speed.steps.end() ? one : 1 / rounded->second.count();
    if (function != speed.functions.end()) {
      time += 1 / function->second.count() + rounds - one;
    } else {
      const double each = static_cast<double>(work_of(in, step).transcendentals) /
                          std::max(1.0, static_cast<double>(in.type(step.results[0]).num_elements()));
      time += rounds + each / speed.elementary.count();
    }
  });
  return Seconds(time * static_cast<double>(n));
}

// What a node's kernel iterates over: its first operand; a lookup its result; embedding_grad the gradients.
const Type& worked_on(const Graph& graph, const GraphNode& node) {
  if (is(node, "embedding")) return graph.type(node.results[0]);
  return graph.type(node.operands[is(node, "embedding_grad") ? 1 : 0]);
}

// The time of the other kernels; empty if not measured.
std::optional<Seconds> measured_kernel(const Graph& graph, const GraphNode& node, const MachineSpeed& speed) {
  if (speed.kernels.empty()) return std::nullopt;
  const Type& type = worked_on(graph, node);
  const auto found = speed.kernels.find({node.op->name, type.dtype});
  if (found == speed.kernels.end()) return std::nullopt;
  std::int64_t width = type.shape.empty() ? 1 : type.shape.back();
  if (is(node, "reduce_sum")) width = graph.type(node.results[0]).num_elements();
  const std::int64_t elements = type.num_elements(), rows = width == 0 ? 0 : elements / width;
  return Flops(elements) / found->second.elements + found->second.row * static_cast<double>(rows);
}

// Both in parallel: the longer, plus the fraction of the shorter that the machine does not hide.
Seconds side_by_side(Seconds working, Seconds moving, const MachineSpeed& speed) {
  return std::max(working, moving) + std::min(working, moving) * speed.serial;
}

// A weight's time as measured with the nearest numbers of rows: it grows evenly between two, and with the rows after the
// last. `far`: the share of the weights that comes from behind the last cache.
double seconds_a_weight(std::span<const ServedProducts> known, double rows, double far) {
  const auto time_of = [&](const ServedProducts& at) { return far / at.far.count() + (1 - far) / at.near.count(); };
  const auto above =
      std::ranges::find_if(known, [&](const ServedProducts& at) { return static_cast<double>(at.rows) >= rows; });
  if (above == known.end()) return time_of(known.back()) * rows / static_cast<double>(known.back().rows);
  if (above == known.begin()) return time_of(*above);
  const ServedProducts& below = *(above - 1);
  const double share = (rows - static_cast<double>(below.rows)) / static_cast<double>(above->rows - below.rows);
  return std::lerp(time_of(below), time_of(*above), share);
}

// The side of a square of as many elements as one matrix of the weights, which may have several dims: heads of a
// projection.
double side_of(const Graph& graph, const GraphNode& node) {
  if (!is(node, "contract")) return std::sqrt(static_cast<double>(graph.type(node.operands[1]).num_elements()));
  const ProductDims dims = product_dims(graph, node);
  return std::sqrt(static_cast<double>(dims.columns) * static_cast<double>(dims.summed));
}

// Of a device that serves, as measured with the nearest sizes of weights: between two by the logarithm of the side.
// Nothing: not measured.
std::optional<Seconds> served_product(const Graph& graph, const GraphNode& node, const Work& work, Seconds moving,
                                      const MachineSpeed& speed) {
  const Type& weights = graph.type(node.operands[1]);
  const auto found = speed.served.find(weights.dtype);
  const double elements = static_cast<double>(weights.num_elements());
  if (!speed.serves || found == speed.served.end() || elements == 0) return std::nullopt;
  const double rows = static_cast<double>(work.flops) / (2 * elements);  // of an expert those that come to it
  double far = 1;
  if (!speed.caches.empty()) {
    const Seconds near = moving_after(speed.caches.back().size, work, false, speed),
                  most = moving_after(speed.caches.back().size + Bytes(1), work, false, speed);
    if (most > near) far = std::clamp((moving - near) / (most - near), 0.0, 1.0);
  }
  const double side = side_of(graph, node);
  const auto above = found->second.lower_bound(static_cast<std::int64_t>(std::ceil(side)));
  const auto below = above == found->second.begin() ? above : std::prev(above);
  const double small = seconds_a_weight(below->second, rows, far);
  if (above == found->second.end() || above == below) return Seconds(elements * small);
  const double low = std::log(static_cast<double>(below->first)), high = std::log(static_cast<double>(above->first));
  return Seconds(elements *
                 std::lerp(small, seconds_a_weight(above->second, rows, far), (std::log(side) - low) / (high - low)));
}

// Calibration measures products on operands in the last cache; bytes from behind it add the difference.
Seconds product_time(const Graph& graph, const GraphNode& node, const Work& work, Seconds moving,
                     const MachineSpeed& speed) {
  if (const std::optional<Seconds> measured = served_product(graph, node, work, moving, speed)) return *measured;
  const DType dtype = graph.type(node.operands[0]).dtype;
  // Products of int8 are not calibrated: where the chip's rate is unknown too, they take f32's, the slower.
  if (is(node, "contract_int8") || is(node, "contract_int4"))
    return Flops(work.flops) / contraction_rate(speed, speed.matmul.contains(DType::i8) ? DType::i8 : dtype) + moving;
  const auto found = speed.products.empty() ? speed.products.end() : speed.products.find({dtype, product_layout(node)});
  if (found == speed.products.end()) return Flops(work.flops) / contraction_rate(speed, dtype) + moving;
  const std::int64_t elements = graph.type(node.operands[0]).num_elements() +
                                graph.type(node.operands[1]).num_elements() +
                                graph.type(node.results[0]).num_elements();
  Seconds near;
  if (!speed.caches.empty()) near = moving_after(speed.caches.back().size, work, false, speed);
  return Flops(work.flops) / found->second.flops + Flops(elements) / found->second.elements +
         std::max(Seconds(), moving - near);
}

Seconds kernel_time(const Graph& graph, const GraphNode& node, const Work& work, Seconds moving,
                    const MachineSpeed& speed) {
  const DType dtype = node.operands.empty() ? graph.type(node.results[0]).dtype : graph.type(node.operands[0]).dtype;
  const Flops flops(work.flops), elementary(work.transcendentals);
  switch (class_of(*node.op)) {
    case OpClass::contraction: return product_time(graph, node, work, moving, speed);
    case OpClass::attention: {
      const AttentionSpeed rates = attention_speed(speed, dtype, is(node, "attention_grad"));
      const Seconds working = flops / rates.products + elementary / rates.elementary;
      return has_one_query(graph, node) ? std::max(working, moving) : working;
    }
    case OpClass::elementwise: {
      if (node.op->elementwise || is(node, "fusion") || is(node, "cast"))
        return side_by_side(chain_time(graph, node, work, speed), moving, speed);
      const std::optional<Seconds> working = measured_kernel(graph, node, speed);
      return side_by_side(working.value_or(flops / speed.kernel + elementary / speed.elementary), moving, speed);
    }
    case OpClass::embedding:
      if (const std::optional<Seconds> working = measured_kernel(graph, node, speed))
        return side_by_side(*working, moving, speed);
      [[fallthrough]];
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
  const bool update = class_of(*node.op) == OpClass::optimizer;
  return kernel_time(graph, node, work, moving_after(work.read + work.written, work, update, speed), speed) +
         speed.call;
}

namespace {

// Carries are on top of the stack. Slices were touched as long ago as the operands that they are taken from; values
// that all iterations share, one iteration ago.
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
