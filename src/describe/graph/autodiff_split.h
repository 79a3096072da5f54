#pragma once
// Taking a graph apart into what runs forward and what runs backward: the inside of autodiff.cc. A Splitter walks the
// nodes in reverse and asks each op for its gradient; what the gradients need from the forward graph is an input that
// the backward graph may have again, a residual, or done again, as the recompute policy says.

#include <map>
#include <optional>
#include <vector>

#include "describe/graph/autodiff.h"
#include "describe/graph/op.h"

namespace systole {

// Where an input of the backward graph comes from.
struct Source {
  enum class Kind { input, residual, cotangent } kind;
  int index;  // of the graph's input, of Split::residuals, of the graph's output
};

// A graph taken apart.
struct Split {
  Graph forward;                              // the outputs of the graph, then the residuals
  Graph backward;                             // outputs: a gradient for each wanted input that has one
  std::vector<Source> sources;                // per input of `backward`
  std::vector<std::optional<int>> gradients;  // per input of the graph: which output of `backward`
  int num_residuals = 0;
};

struct Request {
  const Graph& graph;
  std::vector<bool> wanted;      // per input: its gradient is asked for
  std::vector<bool> available;   // per input: the backward graph may have it again for nothing
  std::vector<bool> cotangents;  // per output: one is given
  std::optional<int> seed;       // this output's cotangent is the constant 1 instead
  const RecomputePolicy& policy;
  bool in_block;  // inside a repeat, where policies act
};

Split split(const Request& request);

class Splitter : public GradientCall {
 public:
  explicit Splitter(const Request& request);
  Split run();

  // --- GradientCall, of the node at hand
  const Attrs& attrs() const override { return node_->attrs; }
  int num_operands() const override { return static_cast<int>(node_->operands.size()); }
  const Type& operand_type(int i) const override { return graph_.type(node_->operands[static_cast<std::size_t>(i)]); }
  const Type& result_type(int i) const override { return graph_.type(node_->results[static_cast<std::size_t>(i)]); }
  Value operand(int i) override { return use(node_->operands[static_cast<std::size_t>(i)]); }
  Value result(int i) override { return use(node_->results[static_cast<std::size_t>(i)]); }
  std::optional<Value> cotangent(int i) const override {
    return cotangent_[index(node_->results[static_cast<std::size_t>(i)])];
  }
  bool needs(int i) const override { return active_[index(node_->operands[static_cast<std::size_t>(i)])]; }
  Graph& graph() override { return backward_; }

 private:
  friend class RepeatSplitter;  // autodiff_repeat.cc

  // A residual: a value of the graph, or the k-th further result that a rewritten repeat gives.
  struct Residual {
    ValueId value;
    int node = -1, further = -1;
  };

  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }

  void seed_output(int i);
  void accumulate(ValueId id, Value gradient);
  void backward_node(int n);
  void backward_repeat(int n);  // autodiff_repeat.cc
  void build_forward();

  Value use(ValueId id);  // the value of the graph, in the backward graph
  Value obtain(ValueId id);
  Value residual(Residual r);
  Value again(ValueId id, const GraphNode& node);
  bool keeps(ValueId id, const GraphNode& node);
  bool cheap_again(const GraphNode& node, int depth);
  int input_index(ValueId id) const;

  const Request& request_;
  const Graph& graph_;
  Graph backward_;
  Split result_;
  std::vector<std::optional<Value>> cotangent_;  // per value of graph_, in backward_
  std::vector<std::optional<Value>> used_;       // per value of graph_, in backward_
  std::vector<bool> active_;                     // per value: a float that depends on a wanted input
  std::vector<Residual> residuals_;
  std::map<int, Graph> bodies_;                     // node of graph_ → its rewritten body
  std::map<int, std::vector<Type>> further_types_;  // node of graph_ → types of its further results
  const GraphNode* node_ = nullptr;                 // at hand
};

// Per value of the graph: a float that depends on an input for which `active` holds.
std::vector<bool> dependents(const Graph& graph, const std::vector<bool>& active);

}  // namespace systole
