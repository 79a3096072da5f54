#pragma once
// Graph rewriting for passes: copies a graph node by node and lets the pass replace nodes.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

// One node as a pass sees it: the graph it is copied to, and its operands there.
struct RewriteCall {
  Graph& to;
  const Graph& from;
  const GraphNode& node;
  std::span<const Value> operands;
};

// Returns the replacement values of the node's results, or nothing to copy the node.
using RewriteFn = std::function<std::optional<std::vector<Value>>(const RewriteCall&)>;

// Rewrites the bodies of repeats first, then the nodes in order. Keeps inputs, outputs and value names. `input_type`,
// where given, changes the types of inputs, parameters included.
Graph rewrite(const Graph& graph, const RewriteFn& fn,
              const std::function<Type(const GraphInput&, const Type&)>& input_type = nullptr);

// Adds the inputs of `from` to `to`, in order; parameters stay parameters.
std::vector<Value> copy_inputs(Graph& to, const Graph& from);

// Maps the values of one graph to values of the graph that it is copied to. Copies the inputs first. Value names are
// copied too.
class ValueMap {
 public:
  ValueMap(Graph& to, const Graph& from);
  Value operator[](ValueId id) const { return values_[static_cast<std::size_t>(id.index)]; }
  void set(ValueId id, Value value);
  std::vector<Value> operands(const GraphNode& node) const;
  void copy(const GraphNode& node);                   // a node of `from`
  void copy(const GraphNode& node, Regions regions);  // with other regions that have as many results
  // Maps `id` to `value`, which already replaces another value. `value` gets the name of `id` if it has none.
  void set_same(ValueId id, Value value);
  void copy_outputs();

 private:
  Graph& to_;
  const Graph& from_;
  std::vector<Value> values_;
  std::vector<Value> operands_;  // operands of the node being copied
};

// Appends a copy of a node with other operands, with its flags; move_node takes the node apart instead of copying it.
std::vector<Value> copy_node(Graph& to, const GraphNode& node, std::span<const Value> operands);
std::vector<Value> move_node(Graph& to, GraphNode&& node, std::span<const Value> operands);

Regions one_region(Graph graph);

bool is(const GraphNode& node, const char* op);

}  // namespace systole
