#include "predict/perf/step_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "describe/graph/collectives_of.h"
#include "describe/graph/work.h"
#include "predict/perf/kernel_seconds.h"
#include "predict/perf/op_time.h"
#include "predict/perf/product_groups.h"

namespace systole {
namespace {

bool is_repeat(const GraphNode& node) { return node.op->name == std::string_view("repeat"); }

// Bytes that an 8-bit product's operand costs before it: read in 16 bits, written in 8.
constexpr double kQuantised = 3;
// Of the bytes of an optimizer's ops, beyond one reading and writing of each: lists of many tensors, and what their
// norms read before.
constexpr double kUpdated = 1.3;

// What stretches are made of, on one mesh.
class Stretches {
 public:
  Stretches(const Program& program, const Cluster& cluster, const KernelChoice& kernels)
      : program_(program), cluster_(cluster), kernels_(kernels) {}

  FunctionParts of(const Graph& graph) const {
    FunctionParts parts;
    add(graph, 1, false, parts);
    return parts;
  }

  MessageParts handed_on(const Function& sends) const {
    MessageParts parts;
    for (const GraphNode& node : sends.graph.nodes()) {
      if (!is_transfer(node)) continue;
      const TransferCall call = transfer_call(sends.graph, node);
      const GroupLinks links = links_of(cluster_, program_.mesh, call.axis);
      const double bytes = static_cast<double>(call.bytes().count()) / copies_of(sends, node.operands[0]);
      if (links.inside < 2) {
        parts.far_seconds += bytes / cluster_.network.count();
        parts.far_hops += 1;
      } else {
        parts.seconds += bytes / (cluster_.fast.count() * cluster_.fast_reached) + cluster_.hop.count();
      }
    }
    return parts;
  }

 private:
  void add(const Graph& graph, double times, bool in_layers, FunctionParts& parts) const {
    StretchParts stretch;
    stretch.times = times;
    stretch.once.layers = in_layers ? 1 : 0;
    add_products(graph, in_layers, stretch.once);
    std::set<std::string> bucketed;  // parameters of a stretch are gathered, and their gradients reduced, in one go
    for (const GraphNode& node : graph.nodes()) {
      if (is_repeat(node)) {
        add(node.regions[0], times * static_cast<double>(node.attrs.get_int("count")), true, parts);
      } else if (is_collective(node)) {
        add_collective(graph, node, bucketed, stretch.once);
      } else if (!node.op->view && !is_transfer(node)) {
        add_kernel(graph, node, stretch.once);
      }
    }
    parts.push_back(stretch);
  }

  // Ranks of a tensor group that all have the whole of what is handed on: each sends a part, and they gather it over
  // faster links (Narayanan et al., arXiv:2104.04473, section 4.1).
  double copies_of(const Function& sends, ValueId id) const {
    const auto model = program_.mesh.find("model");
    if (!model.ok()) return 1;
    for (std::size_t i = 0; i < sends.inputs.size(); ++i) {
      if (sends.graph.inputs()[i].value != id) continue;
      const std::optional<CutValue>& cut = program_.values[static_cast<std::size_t>(sends.inputs[i].value)].cut;
      if (cut && cut->layout.at[*model] != Layout::kWhole) return 1;
    }
    return static_cast<double>(program_.mesh.axes()[*model].size);
  }

  double moving(Bytes bytes) const {
    return static_cast<double>(bytes.count()) / (cluster_.chip.memory.count() * cluster_.chip.memory_reached);
  }

  void add_products(const Graph& graph, bool in_layers, WorkParts& parts) const {
    const bool small = kernels_.products != ProductType::bf16;
    std::set<int> quantised;
    for (const ProductGroup& group : product_groups(graph)) {
      const bool grouped = group.dims.batch > 1;
      const double seconds =
          product_seconds(cluster_.chip, group.dims, in_layers ? kernels_.products : ProductType::bf16);
      (grouped && in_layers ? parts.grouped : in_layers ? parts.products : parts.head_products) += seconds;
      parts.kernels += 1;
      if (!small || !in_layers) continue;
      for (const GraphNode* node : group.nodes) {
        for (const ValueId id : node->operands) {
          const NodeId made = graph.producer(id);
          if (!made.valid() || is_parameter(graph, id) || !quantised.insert(id.index).second) continue;
          parts.moved += moving(Bytes(graph.type(id).num_elements())) * kQuantised;
        }
      }
    }
  }

  // A parameter as it comes into the graph, converted or gathered. In the body of a repeat every f32 tensor that comes
  // in is one: activations are handed on in the compute type, and statistics have no conversion.
  bool is_parameter(const Graph& graph, ValueId id) const {
    const NodeId made = graph.producer(id);
    if (!made.valid()) return graph.type(id).dtype == DType::f32;
    const GraphNode& node = graph.node(made);
    const bool passes =
        node.op->name == std::string_view("cast") || node.op->view || node.op->name == std::string_view("all_gather");
    return passes && is_parameter(graph, node.operands[0]);
  }

  void add_kernel(const Graph& graph, const GraphNode& node, WorkParts& parts) const {
    const OpClass op_class = class_of(*node.op);
    if (op_class == OpClass::contraction) return;
    if (op_class == OpClass::attention) return add_attention(graph, node, parts);
    const bool constant = node.operands.empty() || node.op->name == std::string_view("broadcast");
    if (constant) return;  // part of the kernels that read them
    if (node.op->name == std::string_view("cast") && kernels_.half_copies && is_parameter(graph, node.operands[0]))
      return;
    const Work work = work_of(graph, node);
    const double seconds = moving(work.read + work.written);
    parts.kernels += 1;
    if (op_class == OpClass::optimizer) {
      parts.update += seconds * kUpdated;
    } else {
      parts.moved += seconds;
    }
  }

  void add_attention(const Graph& graph, const GraphNode& node, WorkParts& parts) const {
    const bool backward = node.op->name == std::string_view("attention_grad");
    const AttentionShape shape = attention_shape(graph, node);
    if (kernels_.attention == KernelChoice::Attention::unfused) {
      const UnfusedAttention unfused = unfused_attention_seconds(cluster_.chip, shape, backward);
      parts.products += unfused.products;
      parts.moved += unfused.moved;
      parts.kernels += unfused.kernels;
      return;
    }
    const bool older = kernels_.attention == KernelChoice::Attention::flash_2 && cluster_.chip.attention_2;
    parts.attention += fused_attention_seconds(
        cluster_.chip, older ? *cluster_.chip.attention_2 : cluster_.chip.attention, shape, backward);
    parts.kernels += backward ? 3 : 1;
  }

  static bool has_axis(const CollectiveCall& call, std::string_view axis) {
    const std::vector<std::string> axes = axes_of(call.axis);
    return std::ranges::find(axes, axis) != axes.end();
  }

  void add_collective(const Graph& graph, const GraphNode& node, std::set<std::string>& bucketed,
                      WorkParts& parts) const {
    const CollectiveCall call = collective_call(graph, node);
    if (call.parts == 1) return;
    const GroupLinks links = links_of(cluster_, program_.mesh, call.axis);
    const auto n = static_cast<double>(call.parts);
    auto bytes = static_cast<double>(bytes_of(call.dtype, call.shape).count());
    if (call.kind == CollectiveKind::all_gather) bytes *= n;
    const bool of_parameter = call.kind == CollectiveKind::all_gather && is_parameter(graph, node.operands[0]);
    if (of_parameter && kernels_.half_copies && call.dtype == DType::f32) bytes /= 2;

    MessageParts* kind = &parts.gradients;
    if (has_axis(call, "model"))
      kind = &parts.tensor;
    else if (has_axis(call, "context") && call.kind != CollectiveKind::all_reduce)
      kind = &parts.context;
    else if (has_axis(call, "expert") && call.kind == CollectiveKind::all_to_all)
      kind = &parts.expert;
    else if (of_parameter || call.kind == CollectiveKind::all_gather)
      kind = &parts.parameters;
    const bool bucket = kind == &parts.gradients || kind == &parts.parameters;
    const bool starts = !bucket || bucketed.insert(call.axis + name_of(call.kind)).second;
    parts.kernels += starts ? 1 : 0;

    const double rounds = call.kind == CollectiveKind::all_reduce ? 2 : 1;
    // An all_reduce of many may go by trees, whose steps grow with the logarithm.
    double hops = call.kind == CollectiveKind::all_to_all ? 1 : rounds * (n - 1);
    if (call.kind == CollectiveKind::all_reduce) hops = std::min(hops, 16 * std::log2(n));
    const double fast = cluster_.fast.count() * cluster_.fast_reached;
    if (call.kind == CollectiveKind::all_to_all) {
      const auto inside = static_cast<double>(links.inside);
      kind->seconds += bytes * (inside - 1) / n / fast + (starts ? cluster_.hop.count() : 0);
      if (links.leaves()) kind->far_seconds += bytes * (n - inside) / n / cluster_.network.count();
      kind->far_hops += links.leaves() && starts ? hops : 0;
    } else if (links.leaves()) {
      kind->far_seconds += rounds * bytes * (n - 1) / n / links.bandwidth.count();
      kind->far_hops += starts ? hops : 0;
    } else {
      kind->seconds += rounds * bytes * (n - 1) / n / (links.bandwidth.count() * cluster_.fast_reached) +
                       (starts ? hops * cluster_.hop.count() : 0);
    }
  }

  const Program& program_;
  const Cluster& cluster_;
  const KernelChoice& kernels_;
};

// "forward.3" of chunk 3; without stages "forward".
const Function* function_of(const Program& program, const std::string& what, std::size_t chunk, bool staged) {
  const std::string name = staged ? fmt::format("{}.{}", what, chunk) : what;
  const auto found = std::ranges::find(program.functions, name, &Function::name);
  return found == program.functions.end() ? nullptr : &*found;
}

bool is_by_microbatch(std::string_view name) {
  for (const char* begins : {"forward", "backward", "send", "receive", "evaluate"})
    if (name.starts_with(begins)) return true;
  return false;
}

FunctionParts after_of(const Program& program, const Stretches& stretches) {
  FunctionParts parts;
  const Schedule& train = program.schedule_named("train");
  std::map<int, int> acts;
  for (const Action& action : train.actions) ++acts[action.function];
  for (const auto& [f, times] : acts) {
    const Function& function = program.functions[static_cast<std::size_t>(f)];
    if (is_by_microbatch(function.name)) continue;
    for (StretchParts stretch : stretches.of(function.graph)) {
      stretch.times *= times;
      parts.push_back(stretch);
    }
  }
  return parts;
}

}  // namespace

StepParts step_parts(std::span<const Program* const> stages, const PipelineStrategy& pipeline, int microbatches,
                     const Cluster& cluster, const KernelChoice& kernels) {
  CHECK(static_cast<int>(stages.size()) == pipeline.stages, "{} Programs of {} stages", stages.size(), pipeline.stages);
  StepParts parts;
  parts.pipeline = pipeline;
  parts.microbatches = microbatches;
  parts.kernels = kernels;
  parts.machines = static_cast<double>(cluster.machines());
  if (const auto model = stages[0]->mesh.find("model"); model.ok())
    parts.tensor_ranks = static_cast<double>(stages[0]->mesh.axes()[*model].size);
  parts.far_stages = stages.size() > 1 && parts.machines > 1;
  const auto chunks = static_cast<std::size_t>(pipeline.num_chunks());
  parts.chunks.resize(chunks);
  std::map<std::pair<const Program*, std::size_t>, ChunkParts> known;  // of a Program, by which of its chunks
  std::map<const Program*, FunctionParts> known_after;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Program& program = *stages[s];
    const Stretches stretches(program, cluster, kernels);
    if (!known_after.contains(&program)) known_after[&program] = after_of(program, stretches);
    parts.after.push_back(known_after[&program]);
    // Its chunks, in the order of their numbers, whichever stage the Program was made for.
    std::vector<std::size_t> own;
    for (std::size_t c = 0; c < chunks; ++c)
      if (function_of(program, "forward", c, chunks > 1) != nullptr) own.push_back(c);
    CHECK(static_cast<int>(own.size()) == pipeline.chunks_per_stage, "a stage of {} chunks", own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      ChunkParts& chunk = parts.chunks[s + i * stages.size()];
      const auto [at, first] = known.try_emplace({&program, i});
      if (first) {
        at->second.forward = stretches.of(function_of(program, "forward", own[i], chunks > 1)->graph);
        at->second.backward = stretches.of(function_of(program, "backward", own[i], chunks > 1)->graph);
        if (const Function* sends = function_of(program, "send", own[i], chunks > 1); sends != nullptr)
          at->second.handed_on = stretches.handed_on(*sends);
      }
      chunk = at->second;
    }
    const Work work = work_of(program, program.schedule_named("train"));
    parts.model_flops += static_cast<double>(work.model_flops) * static_cast<double>(cluster.devices) /
                         static_cast<double>(stages.size());
  }
  return parts;
}

}  // namespace systole
