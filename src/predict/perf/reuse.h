#pragma once
// Stack distances: which cache the bytes of a kernel call come from. An LRU cache holds what was touched last, so a
// value comes from the smallest cache that holds all that was touched since. This is its depth in a stack with the last
// touched value on top (Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM
// Systems Journal 9, 1970).

#include <optional>
#include <span>
#include <vector>

#include "describe/ir/op.h"
#include "predict/perf/machine_speed.h"

namespace systole {

// For one graph. REQUIRES: its nodes are passed in order.
class ReuseStack {
 public:
  // `ago`: bytes touched since the inputs were, theirs included. The memory of a result was touched as long ago: the
  // arena reuses what was free longest as often as what was just freed.
  ReuseStack(const Graph& graph, const MachineSpeed& speed, Bytes ago);

  // Marks the value as touched just now, or `ago` bytes ago, its own included.
  void touch(ValueId value, Bytes bytes);
  void set_ago(ValueId value, Bytes ago) { ago_[root(value)] = ago; }

  // The time to move the operands and results of a kernel; marks them as touched. `work`: the node's. `update`: the
  // node is an optimizer.
  Seconds moving(const GraphNode& node, const Work& work, bool update);

 private:
  struct Touched {
    std::size_t value;
    Bytes bytes;
  };
  std::size_t root(ValueId value) const { return roots_[static_cast<std::size_t>(value.index)]; }
  Bytes distance(std::size_t value, Bytes bytes) const;

  const Graph& graph_;
  const MachineSpeed& speed_;
  Bytes places_;                           // touched since the memory of a result was
  std::vector<std::size_t> roots_;         // by value: the value that owns its bytes
  std::vector<std::optional<Bytes>> ago_;  // of inputs and outputs, by root
  std::vector<Touched> stack_;             // the last is on top
};

// Each value once, in order.
std::vector<ValueId> distinct(std::span<const ValueId> values);

// The bytes that a graph touches, each value counted once; of a repeat, its operands and results.
Bytes touched_by(const Graph& graph);

}  // namespace systole
