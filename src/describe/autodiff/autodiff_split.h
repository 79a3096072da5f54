#pragma once
// Splits a graph into a forward and a backward graph; the implementation of autodiff.cc. A Splitter walks the nodes in
// reverse and asks each op for its gradient. Each forward value that a gradient reads is an available input, a residual
// or recomputed, as the recompute policy decides.

#include <map>
#include <optional>
#include <vector>

#include "describe/autodiff/autodiff.h"
#include "describe/ir/op.h"

namespace systole {

// Where an input of the backward graph comes from.
struct Source {
  enum class Kind { input, residual, cotangent } kind;
  int index;  // into the graph's inputs, the residuals or the graph's outputs
};

// The result of splitting a graph.
struct Split {
  Graph forward;                              // outputs: the graph's outputs, then the residuals
  Graph backward;                             // outputs: the gradient of each wanted input that has one
  std::vector<Source> sources;                // per input of `backward`
  std::vector<std::optional<int>> gradients;  // per input of the graph: which output of `backward`
  int num_residuals = 0;
};

struct Request {
  const Graph& graph;
  std::vector<bool> wanted;      // per input: whether its gradient is wanted
  std::vector<bool> available;   // per input: whether `backward` may read it again at no cost
  std::vector<bool> cotangents;  // per output: whether `backward` takes its cotangent
  std::optional<int> seed;       // the loss output: its cotangent is the constant 1
  const RecomputePolicy& policy;
  bool in_block;  // inside the body of a repeat, where recompute policies apply
};

Split split(const Request& request);

class Splitter : public GradientCall {
 public:
  explicit Splitter(const Request& request);
  Split run();

  // --- GradientCall, for the current node
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

  // A residual: a value of the graph, or extra result `further` of the rewritten repeat `node`.
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
  std::map<int, std::vector<Type>> further_types_;  // node of graph_ → types of its extra results
  const GraphNode* node_ = nullptr;                 // current node
};

// Per value of the graph: whether it is a float that depends on an input that `active` marks.
std::vector<bool> dependents(const Graph& graph, const std::vector<bool>& active);

}  // namespace systole
