#pragma once
// The graph IR: pure operations on typed values in SSA form. Nodes are in topological order: each operand is defined
// before its use. A node has n results and may have regions: `repeat` holds the graph of its body, `fusion` the chain
// that one kernel runs. A region is closed: everything it reads is an operand. A Graph is a value: copying copies it.
//
//   Graph g("square");
//   Value x = g.input("x", Type(DType::f32, {3}));
//   g.output("y", mul(x, x));                       // ops/ops.h
//
// Graphs print as text and read back (text.h). Building an invalid node throws Failure(invalid), which names the
// violated constraint of the op ("softmax_c1: …").

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/ir/attrs.h"
#include "describe/ir/type.h"
#include "describe/ir/value_ids.h"
#include "ground/base/units.h"

namespace systole {

class Graph;
struct OpDef;

using NodeId = Id<struct NodeTag>;

// How a parameter is initialized.
struct Init {
  enum class Kind { zeros, ones, normal, uniform } kind = Kind::zeros;
  double scale = 0;  // standard deviation of normal, half width of uniform
  bool operator==(const Init&) const = default;
};

// A trained or frozen tensor. `{layer}` in the name stands for the index on the outermost dim of a stacked parameter:
// "blocks.{layer}.attn.q" with f32[layer=3, …] is three tensors in a checkpoint.
struct Parameter {
  std::string name;
  Type type;
  Init init;
  bool trainable = true;
  bool decay = true;  // weight decay applies
  int stage = 0;      // pipeline: the first stage that has the parameter; its copy is saved
  bool operator==(const Parameter&) const = default;
};

// A handle to a value while building. REQUIRES: its graph outlives it and does not move.
struct Value {
  Graph* graph = nullptr;
  ValueId id;
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  std::int64_t size(int dim) const { return type().size(dim); }
  // Gives the value a name, for recompute policies and probes; returns itself.
  Value named(std::string name) const;
};

// The regions of a node, immutable: copies of the node share them.
class Regions {
 public:
  Regions() = default;
  Regions(std::vector<Graph> graphs);

  inline const Graph* begin() const;
  inline const Graph* end() const;
  inline const Graph* data() const;
  inline const Graph& operator[](std::size_t i) const;
  inline std::size_t size() const;
  bool empty() const { return graphs_ == nullptr; }

 private:
  std::shared_ptr<const std::vector<Graph>> graphs_;  // null: none
};

struct GraphNode {
  const OpDef* op = nullptr;
  Attrs attrs;
  ValueIds operands;
  ValueIds results;
  Regions regions;
  bool recomputed = false;  // repeats a forward computation in the backward pass (rematerialization)
};

struct GraphInput {
  ValueId value;
  std::string name;
  std::optional<Parameter> parameter;
};

struct GraphOutput {
  ValueId value;
  std::string name;
};

class Graph {
 public:
  Graph() = default;
  explicit Graph(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  Value input(std::string name, Type type);
  Value parameter(Parameter parameter);  // adds an input with the parameter's name
  Value copy_input(const Graph& from, const GraphInput& input);
  void output(std::string name, Value value);

  // Appends a node after checking its operands; returns its results.
  // Errors: Failure(invalid) naming the op and the constraint.
  std::vector<Value> apply(const OpDef& op, std::span<const Value> operands, Attrs attrs = {}, Regions regions = {});
  std::vector<Value> apply(std::string_view op, std::span<const Value> operands, Attrs attrs = {},
                           Regions regions = {});
  // Appends a copy of a node of `from`, with its flags, and returns it. Result types are copied too, unless an operand
  // has another type here; then they are inferred again.
  const GraphNode& copy(const Graph& from, const GraphNode& node, std::span<const Value> operands);

  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const GraphNode& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id.index)]; }
  GraphNode& last_node() { return nodes_.back(); }
  int num_values() const { return static_cast<int>(values_.size()); }
  const Type& type(ValueId id) const { return *values_[static_cast<std::size_t>(id.index)].type; }
  const std::string& value_name(ValueId id) const { return values_[static_cast<std::size_t>(id.index)].name; }
  void set_value_name(ValueId id, std::string name) {
    values_[static_cast<std::size_t>(id.index)].name = std::move(name);
  }
  // The node that defines a value, and which of its results the value is. An input has no producer: not valid().
  NodeId producer(ValueId id) const { return values_[static_cast<std::size_t>(id.index)].node; }
  int result_index(ValueId id) const { return values_[static_cast<std::size_t>(id.index)].result; }

  Value value(ValueId id) { return Value{this, id}; }
  // Errors: Failure(not_found).
  Value input_named(std::string_view name);
  ValueId output_named(std::string_view name) const;
  std::optional<int> find_input(std::string_view name) const;

 private:
  struct ValueRecord {
    std::shared_ptr<const Type> type;  // shared by copies of the value; immutable
    std::string name;
    NodeId node;
    int result = 0;
  };
  ValueId add_value(std::shared_ptr<const Type> type, NodeId node, int result);
  void check_operand(const Value& operand, const OpDef& op) const;

  std::string name_;
  std::vector<ValueRecord> values_;  // references to its types stay valid as long as the graph
  std::vector<GraphNode> nodes_;
  std::vector<GraphInput> inputs_;
  std::vector<GraphOutput> outputs_;
};

const Graph* Regions::begin() const { return data(); }
const Graph* Regions::end() const { return data() + size(); }
const Graph* Regions::data() const { return graphs_ ? graphs_->data() : nullptr; }
const Graph& Regions::operator[](std::size_t i) const { return (*graphs_)[i]; }
std::size_t Regions::size() const { return graphs_ ? graphs_->size() : 0; }

// Copies the nodes that from's outputs need into `to`. `inputs` replaces from's inputs, in order. Returns the values of
// from's outputs in `to`. Value names are copied too.
std::vector<Value> inline_graph(Graph& to, const Graph& from, std::span<const Value> inputs);

int count_nodes(const Graph& graph);  // counts nodes in regions too

}  // namespace systole
