#pragma once
// A graph of a step as a compiler sees it: the readers of each value, which values are parameters or gradients, and
// which have no buffer because they are fused into their readers (docs/concepts/memory.md).

#include <initializer_list>
#include <vector>

#include "describe/ir/ir.h"
#include "predict/perf/compiler_layout.h"

namespace systole {

bool one_of(const GraphNode& node, std::initializer_list<const char*> names);

class CompiledGraph {
 public:
  // `graph` and `layout` must outlive this. `depth`: number of enclosing loops.
  CompiledGraph(const Graph& graph, const CompilerLayout& layout, int depth);

  const Graph& graph;
  const int depth;

  // Indices of the nodes that read it; the number of nodes stands for an output.
  const std::vector<int>& readers_of(ValueId id) const { return readers_[static_cast<std::size_t>(id.index)]; }
  std::vector<const GraphNode*> nodes_reading(ValueId id) const;  // without outputs
  bool is_output(ValueId id) const;

  // A parameter, a slice of one, or a moved one, as marked so far.
  bool is_parameter(ValueId id) const { return of_parameter_[static_cast<std::size_t>(id.index)]; }
  void mark_parameter(ValueId id, bool yes) { of_parameter_[static_cast<std::size_t>(id.index)] = yes; }
  void mark_parameters(const GraphNode& node);  // marks the result of a node that moves a parameter
  bool is_gradient(ValueId id) const { return of_gradient_[static_cast<std::size_t>(id.index)]; }

  // Fused into its readers: it has no buffer.
  bool is_fused(const GraphNode& node) const;
  // Padded size of its buffer.
  Bytes bytes_in(ValueId id) const;
  // The dim of a stacked parameter along which all_gather concatenates shards that fill no whole tiles; it cannot be
  // innermost. `slice`: one layer of the stack. -1: none.
  int put_end_to_end(ValueId slice) const;
  // Type of the logits' gradient if `node` reads it, else nullptr.
  const Type* loss_read_by(const GraphNode& node) const;

 private:
  bool of_attention(ValueId id) const;
  bool read_by_product(const GraphNode& node) const;
  bool ends_another(const GraphNode& node) const;

  const CompilerLayout& layout_;
  std::vector<std::vector<int>> readers_;  // by value, like the next two
  std::vector<bool> of_parameter_;
  std::vector<bool> of_gradient_;  // on its way to the optimizer
};

}  // namespace systole
