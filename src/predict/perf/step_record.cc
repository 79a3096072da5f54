#include "predict/perf/step_record.h"

#include <algorithm>
#include <map>
#include <set>

#include "describe/ir/rewrite.h"
#include "describe/ir/work.h"
#include "describe/program/collectives_of.h"
#include "predict/perf/op_time.h"
#include "predict/perf/product_groups.h"

namespace systole {
namespace {

// True for a parameter as an input of the graph, cast or gathered. In the body of a repeat every f32 input counts as a
// parameter: activations have the compute type, and statistics are never cast.
bool is_parameter(const Graph& graph, ValueId id) {
  const NodeId made = graph.producer(id);
  if (!made.valid()) return graph.type(id).dtype == DType::f32;
  const GraphNode& node = graph.node(made);
  const bool passes = is(node, "cast") || node.op->view || is(node, "all_gather");
  return passes && is_parameter(graph, node.operands[0]);
}

bool has_axis(const CollectiveCall& call, std::string_view axis) {
  const std::vector<std::string> axes = axes_of(call.axis);
  return std::ranges::find(axes, axis) != axes.end();
}

CarriedKind carried_by(const CollectiveCall& call, bool of_parameter) {
  if (has_axis(call, "model")) return CarriedKind::tensor;
  if (has_axis(call, "context") && call.kind != CollectiveKind::all_reduce) return CarriedKind::context;
  if (has_axis(call, "expert") && call.kind == CollectiveKind::all_to_all) return CarriedKind::expert;
  return of_parameter || call.kind == CollectiveKind::all_gather ? CarriedKind::parameters : CarriedKind::gradients;
}

class Recorder {
 public:
  explicit Recorder(const Graph& graph) : graph_(graph) {}

  // The graph's own work, without that of its repeats.
  StretchRecord stretch(std::int64_t times, bool in_layers) {
    stretch_.times = times;
    stretch_.in_layers = in_layers;
    add_products();
    for (const GraphNode& node : graph_.nodes()) {
      if (is(node, "repeat")) continue;
      const Work work = work_of(graph_, node);
      stretch_.flops += work.flops;
      stretch_.model_flops += work.model_flops;
      if (is_collective(node)) {
        add_message(node);
      } else if (!node.op->view && !is_transfer(node)) {
        add_kernel(node, work);
      }
    }
    return std::move(stretch_);
  }

 private:
  void add_products() {
    std::set<int> quantised;
    for (const ProductGroup& group : product_groups(graph_)) {
      stretch_.products.push_back(group.dims);
      for (const GraphNode* node : group.nodes) {
        for (const ValueId id : node->operands) {
          const bool made = graph_.producer(id).valid() && !is_parameter(graph_, id);
          if (made && quantised.insert(id.index).second) stretch_.quantised += graph_.type(id).num_elements();
        }
      }
    }
  }

  // Its rows are quantised by a kernel before it. Weights in four bits are priced as those in eight.
  void add_int8_product(const GraphNode& node) {
    const Type &x = graph_.type(node.operands[0]), &y = graph_.type(node.results[0]);
    stretch_.int8_products.push_back({.rows = x.num_elements() / x.size(x.ndim() - 1),
                                      .columns = y.size(y.ndim() - 1),
                                      .summed = x.size(x.ndim() - 1)});
    ++stretch_.kernels;
    stretch_.moved += (x.bytes() + graph_.type(node.operands[2]).bytes()).count() + x.num_elements();
  }

  void add_kernel(const GraphNode& node, const Work& work) {
    const OpClass op_class = class_of(*node.op);
    if (is(node, "contract_int8") || is(node, "contract_int4")) add_int8_product(node);
    if (op_class == OpClass::contraction) return;
    if (op_class == OpClass::attention && !has_one_query(graph_, node)) {
      stretch_.attention.push_back({attention_shape(graph_, node), is(node, "attention_grad")});
      return;
    }
    if (is_constant(node)) return;  // part of the kernels that read it
    std::int64_t bytes = (work.read + work.written).count();
    // One row per token, repeats included: bytes are proportional to tokens, however few rows the table has.
    if (is(node, "embedding") || is(node, "gather_rows"))
      bytes = (graph_.type(node.operands[1]).bytes() + graph_.type(node.results[0]).bytes() * 2).count();
    ++stretch_.kernels;
    if (op_class == OpClass::optimizer) {
      stretch_.updated += bytes;
      return;
    }
    stretch_.moved += bytes;
    if (adds_to_sum(node)) {
      stretch_.summed += bytes;
      ++stretch_.summing;
    }
    if (!is(node, "cast") || !is_parameter(graph_, node.operands[0])) return;
    stretch_.converted += bytes;
    ++stretch_.converting;
  }

  // True if the node adds a product's gradient to an accumulator that is an input of the same type.
  bool adds_to_sum(const GraphNode& node) const {
    if (node.operands.size() != 2 || node.results.size() != 1) return false;
    const NodeId gradient = graph_.producer(node.operands[0]);
    return gradient.valid() && is(graph_.node(gradient), "contract") && !graph_.producer(node.operands[1]).valid() &&
           graph_.type(node.operands[1]) == graph_.type(node.results[0]) && is_output(node.results[0]);
  }

  bool is_output(ValueId id) const {
    return std::ranges::any_of(graph_.outputs(), [&](const GraphOutput& output) { return output.value == id; });
  }

  bool is_constant(const GraphNode& node) const {
    if (node.operands.empty() || is(node, "broadcast")) return true;
    const NodeId made = graph_.producer(node.operands[0]);
    return is(node, "copy") && made.valid() && is_constant(graph_.node(made));
  }

  void add_message(const GraphNode& node) {
    const CollectiveCall call = collective_call(graph_, node);
    if (call.parts == 1) return;
    const bool gathered = call.kind == CollectiveKind::all_gather && is_parameter(graph_, node.operands[0]);
    MessageRecord message{call.kind, call.axis, call.algorithm, call.dtype, carried_by(call, gathered), false, true, 0};
    // Also a parameter that an update made: a sharded one is gathered for the next step.
    message.parameter = call.kind == CollectiveKind::all_gather && message.carried == CarriedKind::parameters &&
                        call.dtype == DType::f32;
    message.bytes = bytes_of(call.dtype, call.shape).count();
    // All parameters of a stretch are gathered in one message, and their gradients reduced in one.
    if (message.carried == CarriedKind::parameters || message.carried == CarriedKind::gradients)
      message.starts = bucketed_.insert(call.axis + name_of(call.kind)).second;
    stretch_.messages.push_back(std::move(message));
  }

  const Graph& graph_;
  StretchRecord stretch_;
  std::set<std::string> bucketed_;
};

void add_stretches(const Graph& graph, std::int64_t times, bool in_layers, FunctionRecord& record) {
  for (const GraphNode& node : graph.nodes()) {
    if (is(node, "repeat")) add_stretches(node.regions[0], times * node.attrs.get_int("count"), true, record);
  }
  record.push_back(Recorder(graph).stretch(times, in_layers));
}

// True if the value bound to an input of the function is replicated along `model`.
bool is_copied(const Program& program, const Function& function, ValueId id) {
  const auto model = program.mesh.find("model");
  if (!model.ok()) return false;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    if (function.graph.inputs()[i].value != id) continue;
    const std::optional<CutValue>& cut = program.values[static_cast<std::size_t>(function.inputs[i].value)].cut;
    return !cut || cut->layout.at[*model] == Layout::kWhole;
  }
  return true;
}

std::vector<HandoverRecord> handovers_of(const Program& program, const Function* function) {
  std::vector<HandoverRecord> handovers;
  if (function == nullptr) return handovers;
  for (const GraphNode& node : function->graph.nodes()) {
    if (!is_transfer(node)) continue;
    const TransferCall call = transfer_call(function->graph, node);
    if (call.sends)
      handovers.push_back({call.axis, call.bytes().count(), is_copied(program, *function, node.operands[0])});
  }
  return handovers;
}

bool is_by_microbatch(std::string_view name) {
  for (const char* begins : {"forward", "backward", "send", "receive", "evaluate"})
    if (name.starts_with(begins)) return true;
  return false;
}

const Function* find_function(const Program& program, const std::string& name) {
  const auto found = std::ranges::find(program.functions, name, &Function::name);
  return found == program.functions.end() ? nullptr : &*found;
}

Bytes sent_by(const FunctionRecord& function, const Mesh& mesh, const Coordinates& device) {
  Bytes sum;
  for (const StretchRecord& stretch : function) {
    for (const MessageRecord& message : stretch.messages) {
      CollectiveCall call;
      call.kind = message.kind;
      call.axis = message.axes;
      call.dtype = message.dtype;
      call.shape = {message.bytes / size_of(message.dtype)};
      std::int64_t place = 0;
      for (const std::string& name : axes_of(message.axes)) {
        const std::size_t axis = mesh.find(name).value();
        call.parts *= mesh.axes()[axis].size;
        place = place * mesh.axes()[axis].size + device[axis];
      }
      sum +=
          bytes_sent(collective_on(call, mesh).value(), message.algorithm, static_cast<std::int32_t>(place)).value() *
          stretch.times;
    }
  }
  return sum;
}

std::int64_t sum_of(const std::vector<HandoverRecord>& handovers) {
  std::int64_t sum = 0;
  for (const HandoverRecord& handover : handovers) sum += handover.bytes;
  return sum;
}

}  // namespace

FunctionRecord function_record(const Graph& graph) {
  FunctionRecord record;
  add_stretches(graph, 1, false, record);
  for (StretchRecord& stretch : record) stretch.function = graph.name().substr(0, graph.name().find('.'));
  return record;
}

StageRecord stage_record(const Program& program, const PipelineStrategy& pipeline) {
  StageRecord stage;
  const int chunks = pipeline.num_chunks();
  for (int c = 0; c < chunks; ++c) {
    const auto function = [&](const char* what) {
      return find_function(program, chunks > 1 ? fmt::format("{}.{}", what, c) : what);
    };
    const Function* forward = function("forward");
    if (forward == nullptr) continue;
    ChunkRecord chunk;
    chunk.forward = function_record(forward->graph);
    chunk.backward = function_record(function("backward")->graph);
    if (chunks > 1) {
      chunk.sent = handovers_of(program, function("send"));
      chunk.sent_back = handovers_of(program, find_function(program, fmt::format("send_back.{}", c - 1)));
    }
    stage.chunks.push_back(std::move(chunk));
  }
  CHECK(static_cast<int>(stage.chunks.size()) == pipeline.chunks_per_stage, "a stage of {} chunks",
        stage.chunks.size());
  std::map<int, std::int64_t> acts;
  for (const Action& action : program.schedule_named("train").actions) ++acts[action.function];
  for (const auto& [f, times] : acts) {
    const Function& function = program.functions[static_cast<std::size_t>(f)];
    if (function.name.starts_with("send_ties") || function.name.starts_with("send_sums")) {
      for (HandoverRecord& tie : handovers_of(program, &function)) stage.ties.push_back(std::move(tie));
    }
    if (is_by_microbatch(function.name)) continue;
    for (StretchRecord& stretch : function_record(function.graph)) {
      stretch.times *= times;
      stage.after.push_back(std::move(stretch));
    }
  }
  return stage;
}

StepRecord step_record(std::span<const Program* const> stages, const PipelineStrategy& pipeline, int microbatches) {
  CHECK(static_cast<int>(stages.size()) == pipeline.stages, "{} Programs of {} stages", stages.size(), pipeline.stages);
  StepRecord step{stages[0]->mesh, pipeline, microbatches, {}};
  std::map<const Program*, std::shared_ptr<const StageRecord>> known;
  for (const Program* program : stages) {
    std::shared_ptr<const StageRecord>& stage = known[program];
    if (stage == nullptr) stage = std::make_shared<const StageRecord>(stage_record(*program, pipeline));
    step.stages.push_back(stage);
  }
  return step;
}

std::int64_t model_flops_of(const StepRecord& step, std::size_t stage) {
  std::int64_t flops = 0;
  const auto add = [&](const FunctionRecord& function, std::int64_t times) {
    for (const StretchRecord& stretch : function) flops += stretch.model_flops * stretch.times * times;
  };
  for (const ChunkRecord& chunk : step.stages[stage]->chunks) {
    add(chunk.forward, step.microbatches);
    add(chunk.backward, step.microbatches);
  }
  add(step.stages[stage]->after, 1);
  return flops;
}

StageTotals totals_of(const StepRecord& step, std::size_t stage) {
  const StageRecord& record = *step.stages[stage];
  StageTotals totals;
  const std::int64_t each = step.mesh.num_devices() / static_cast<std::int64_t>(step.stages.size());
  const Coordinates device = step.mesh.coordinates(static_cast<std::int64_t>(stage) * each);
  const auto add = [&](const FunctionRecord& function, std::int64_t times) {
    for (const StretchRecord& stretch : function) totals.flops += stretch.flops * stretch.times * times;
    totals.sent += sent_by(function, step.mesh, device) * times;
  };
  for (const ChunkRecord& chunk : record.chunks) {
    add(chunk.forward, step.microbatches);
    add(chunk.backward, step.microbatches);
    totals.sent += Bytes(sum_of(chunk.sent) + sum_of(chunk.sent_back)) * step.microbatches;
  }
  add(record.after, 1);
  totals.sent += Bytes(sum_of(record.ties));
  totals.model_flops = model_flops_of(step, stage);
  return totals;
}

}  // namespace systole
