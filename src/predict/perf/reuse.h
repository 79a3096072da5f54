#pragma once
// Where the bytes of kernel calls come from. A cache holds what was touched last, so a value comes from the smallest
// one that holds all that was touched since it was: its distance on a stack that the last value touched lies on top of
// (Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9, 1970).

#include <optional>
#include <vector>

#include "describe/graph/op.h"
#include "predict/perf/machine_speed.h"

namespace systole {

// Of one graph, whose nodes are asked about in order.
class ReuseStack {
 public:
  // `ago`: bytes touched since the inputs were, theirs included. The place of a result was touched as long ago: the
  // arena hands out what was free longest as often as what has just become free.
  ReuseStack(const Graph& graph, const MachineSpeed& speed, Bytes ago);

  // The value was touched just now, or `ago` bytes ago, theirs included.
  void touch(ValueId value, Bytes bytes);
  void set_ago(ValueId value, Bytes ago) { ago_[root(value)] = ago; }

  // Moving the operands and results of a kernel, which are touched thereby. `work` is the node's; `update`: it is an
  // optimizer's.
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
  Bytes places_;                           // touched since the place of a result was
  std::vector<std::size_t> roots_;         // what holds the bytes of each value
  std::vector<std::optional<Bytes>> ago_;  // of inputs and outputs, by root
  std::vector<Touched> stack_;             // the last is on top
};

// The bytes that a graph touches, each value counted once; a repeat's are what goes into it and comes out.
Bytes touched_by(const Graph& graph);

}  // namespace systole
