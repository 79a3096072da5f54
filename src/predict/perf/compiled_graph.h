#pragma once
// A graph of a step as a compiler reads it: who reads each value, which values are parameters or gradients on their
// way, and which have no place because they are computed where they are read (docs/concepts/memory.md).

#include <initializer_list>
#include <vector>

#include "describe/graph/ir.h"
#include "predict/perf/compiler_layout.h"

namespace systole {

bool one_of(const GraphNode& node, std::initializer_list<const char*> names);

class CompiledGraph {
 public:
  // `graph`, `layout`: read as long as this lives. `depth`: loops around it.
  CompiledGraph(const Graph& graph, const CompilerLayout& layout, int depth);

  const Graph& graph;
  const int depth;

  // Nodes that read it; the number of nodes stands for an output.
  const std::vector<int>& readers_of(ValueId id) const { return readers_[static_cast<std::size_t>(id.index)]; }
  std::vector<const GraphNode*> nodes_reading(ValueId id) const;  // without outputs
  bool is_output(ValueId id) const;

  // A parameter, its slice, or what moves one: as far as it was marked.
  bool is_parameter(ValueId id) const { return of_parameter_[static_cast<std::size_t>(id.index)]; }
  void mark_parameter(ValueId id, bool yes) { of_parameter_[static_cast<std::size_t>(id.index)] = yes; }
  void mark_parameters(const GraphNode& node);  // results of a node that moves one
  bool is_gradient(ValueId id) const { return of_gradient_[static_cast<std::size_t>(id.index)]; }

  // Computed where it is read: has no place of its own.
  bool is_fused(const GraphNode& node) const;
  // What its place takes.
  Bytes bytes_in(ValueId id) const;
  // The dim of a stack whose parts of all devices are put end to end: parts that fill no whole tiles cannot lie
  // innermost for it. `slice`: of one layer. -1: none.
  int put_end_to_end(ValueId slice) const;
  // The gradient of the logits, where `node` reads it: nullptr where it does not.
  const Type* loss_read_by(const GraphNode& node) const;

 private:
  bool of_attention(ValueId id) const;
  bool read_by_product(const GraphNode& node) const;
  bool ends_another(const GraphNode& node) const;

  const CompilerLayout& layout_;
  std::vector<std::vector<int>> readers_;  // by value, as what follows
  std::vector<bool> of_parameter_;
  std::vector<bool> of_gradient_;  // on its way to the optimizer
};

}  // namespace systole
