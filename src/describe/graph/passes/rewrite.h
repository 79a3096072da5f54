#pragma once
// The one way in which passes change a graph: copy it node by node, and let the pass say otherwise.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

// What a pass sees of one node: where it is copied to, and its operands there.
struct RewriteCall {
  Graph& to;
  const Graph& from;
  const GraphNode& node;
  std::span<const Value> operands;
};

// Returns the values that stand for the node's results, or nothing to have it copied.
using RewriteFn = std::function<std::optional<std::vector<Value>>(const RewriteCall&)>;

// Bodies of repeats are rewritten first, then the nodes in order. Inputs, outputs and value names are kept.
// `input_type`, where given, changes the types of the inputs (parameters included).
Graph rewrite(const Graph& graph, const RewriteFn& fn,
              const std::function<Type(const GraphInput&, const Type&)>& input_type = nullptr);

// The inputs of `from`, parameters as parameters, as inputs of `to`; in order.
std::vector<Value> copy_inputs(Graph& to, const Graph& from);

// The values of one graph as values of another that it is copied to, beginning with its inputs. Names come along.
class ValueMap {
 public:
  ValueMap(Graph& to, const Graph& from);
  Value operator[](ValueId id) const { return values_[static_cast<std::size_t>(id.index)]; }
  void set(ValueId id, Value value);
  std::vector<Value> operands(const GraphNode& node) const;
  void copy(const GraphNode& node);                   // one node of `from`
  void copy(const GraphNode& node, Regions regions);  // with other regions that have as many results
  // Another value's stand-in also stands for this one, whose name it takes if it has none.
  void set_same(ValueId id, Value value);
  void copy_outputs();

 private:
  Graph& to_;
  const Graph& from_;
  std::vector<Value> values_;
  std::vector<Value> operands_;  // of the node that is copied
};

// Copies or moves one node to other operands, with its flags.
std::vector<Value> copy_node(Graph& to, const GraphNode& node, std::span<const Value> operands);
std::vector<Value> move_node(Graph& to, GraphNode&& node, std::span<const Value> operands);

Regions one_region(Graph graph);

bool is(const GraphNode& node, const char* op);

}  // namespace systole
