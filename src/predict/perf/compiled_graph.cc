#include "predict/perf/compiled_graph.h"

#include <algorithm>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/program/collective_call.h"

namespace systole {
namespace {

bool moves_only(const GraphNode& node) {
  return node.op->view || one_of(node, {"cast", "copy", "transpose", "slice", "take_part", "pad"});
}

}  // namespace

bool one_of(const GraphNode& node, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return is(node, name); });
}

CompiledGraph::CompiledGraph(const Graph& of, const CompilerLayout& layout, int loops)
    : graph(of), depth(loops), layout_(layout) {
  const auto values = static_cast<std::size_t>(graph.num_values());
  readers_.resize(values);
  of_parameter_.resize(values);
  of_gradient_.resize(values);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId id : graph.nodes()[n].operands)
      readers_[static_cast<std::size_t>(id.index)].push_back(static_cast<int>(n));
  }
  for (const GraphOutput& output : graph.outputs())
    readers_[static_cast<std::size_t>(output.value.index)].push_back(static_cast<int>(graph.nodes().size()));
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const GraphNode& node = graph.nodes()[n];
    if (one_of(node, {"adamw", "sgd"})) of_gradient_[static_cast<std::size_t>(node.operands[1].index)] = true;
    if (!is_collective(node) && !moves_only(node)) continue;
    if (is_gradient(node.results[0])) of_gradient_[static_cast<std::size_t>(node.operands[0].index)] = true;
  }
}

std::vector<const GraphNode*> CompiledGraph::nodes_reading(ValueId id) const {
  std::vector<const GraphNode*> nodes;
  for (const int reader : readers_of(id))
    if (reader < static_cast<int>(graph.nodes().size()))
      nodes.push_back(&graph.nodes()[static_cast<std::size_t>(reader)]);
  return nodes;
}

bool CompiledGraph::is_output(ValueId id) const {
  const std::vector<int>& readers = readers_of(id);
  return !readers.empty() && readers.back() == static_cast<int>(graph.nodes().size());
}

void CompiledGraph::mark_parameters(const GraphNode& node) {
  if (moves_only(node) || is(node, "all_gather")) mark_parameter(node.results[0], is_parameter(node.operands[0]));
}

// True if attention reads it in its own layout (rows of a head's size), directly or through rotary and views. Queries
// are laid out anew inside if several share a key's head; before that they lie in the order that pads least.
bool CompiledGraph::of_attention(ValueId id) const {
  for (const GraphNode* by : nodes_reading(id)) {
    if (one_of(*by, {"attention", "attention_grad"})) {
      const Type &q = graph.type(by->operands[0]), &k = graph.type(by->operands[1]);
      if (id != by->operands[0] || q.size(2) == k.size(2)) return true;
    }
    if ((is(*by, "rotary") || by->op->view) && of_attention(by->results[0])) return true;
  }
  return false;
}

Bytes CompiledGraph::bytes_in(ValueId id) const {
  const Type& type = graph.type(id);
  return type.ndim() == 4 && of_attention(id) ? padded_heads(type, layout_) : padded(type, layout_);
}

bool CompiledGraph::is_fused(const GraphNode& node) const {
  if (layout_.products_read_places && !node.op->cheap && !node.op->view && read_by_product(node)) return false;
  if (node.op->view || one_of(node, {"broadcast", "constant", "take_part", "slice"})) return true;
  if (is(node, "cross_entropy_grad")) return true;
  const bool light = node.op->elementwise || one_of(node, {"transpose", "pad", "rotary", "copy"});
  if (!light) return false;
  return node.op->cheap || readers_of(node.results[0]).size() <= 1 || !ends_another(node);
}

bool CompiledGraph::read_by_product(const GraphNode& node) const {
  return std::ranges::any_of(nodes_reading(node.results[0]), [](const GraphNode* by) { return is(*by, "contract"); });
}

// True if `node` is fused as the end of the op that makes an operand (a product, a norm, attention) and takes its
// buffer: nothing else reads that operand. Other elementwise ops are computed again by each reader.
bool CompiledGraph::ends_another(const GraphNode& node) const {
  return std::ranges::any_of(node.operands, [&](ValueId id) {
    const NodeId by = graph.producer(id);
    return by.valid() && readers_of(id).size() == 1 && !is_fused(graph.node(by));
  });
}

int CompiledGraph::put_end_to_end(ValueId slice) const {
  for (const GraphNode* by : nodes_reading(slice)) {
    if (!is(*by, "all_gather")) continue;
    const int dim = static_cast<int>(by->attrs.get_int("dim"));
    if (graph.type(slice).size(dim) % layout_.lanes != 0) return dim + 1;
  }
  return -1;
}

const Type* CompiledGraph::loss_read_by(const GraphNode& node) const {
  for (const ValueId id : node.operands) {
    const NodeId by = graph.producer(id);
    if (by.valid() && is(graph.node(by), "cross_entropy_grad")) return &graph.type(id);
  }
  return nullptr;
}

}  // namespace systole
