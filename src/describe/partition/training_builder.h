#pragma once
// Everything that all training steps share: values, functions, gradients, update and snapshot of one device's Program.
// Internal to the partitioner. A TrainingPolicy holds what differs between plain, exact and pipelined steps.

#include <map>
#include <string>
#include <vector>

#include "describe/partition/spmd.h"
#include "describe/partition/training.h"
#include "describe/partition/update.h"

namespace systole {

class TrainingPolicy;

using LayoutsByName = std::map<std::string, Layout>;

// The inputs of evaluation are "evaluate/<name>".
constexpr const char* kEvaluationPrefix = "evaluate/";

class TrainingBuilder {
 public:
  // REQUIRES: no axis of size 1; `strategy` outlives this.
  TrainingBuilder(const std::string& name, const Mesh& mesh, const Strategy& strategy, const Target& target,
                  const WorkspaceOf& workspace_of);
  // REQUIRES: called once. Errors: as training_program.
  Program build(TrainingPolicy& policy, const Graph& loss, const std::optional<Graph>& evaluation,
                std::span<const StepShape> shapes = {});

  const Strategy& strategy() const { return strategy_; }
  int microbatches() const { return strategy_.microbatches; }
  const Mesh& mesh() const { return layouts_.mesh(); }
  bool alone() const { return mesh().trivial(); }  // one device
  const TrainingLayouts& layouts() const { return layouts_; }
  ProgramBuilder& program() { return builder_; }
  const ProgramBuilder& program() const { return builder_; }
  const std::vector<Parameter>& trained() const { return trained_; }
  DType scalar() const { return scalar_; }  // type of losses
  DType moment() const { return moment_; }  // of norms and moments: the parameters' type; known after add_inputs
  DType reduce_type(const Parameter& p) const;

  // --- values
  // A value of type `whole`, of which a device holds its shard by `layout`.
  void add_value(const std::string& name, const Type& whole, const Layout& layout, Residence residence, int slots,
                 std::optional<Parameter> parameter = std::nullopt);
  void add_parameter(const Parameter& p);   // also to trained(), if it is trainable
  void add_parameters(const Graph& graph);  // those that the Program lacks
  // Adds inputs of the graph that are neither parameters nor from another chunk. Scalars have one slot and no prefix.
  // Errors: Failure(invalid) when the mesh does not divide the rows.
  void add_data_inputs(const Graph& graph, const std::string& prefix, int slots);
  void add_output(const std::string& name, DType dtype, int slots);

  // --- graphs and functions of one device
  // A graph of the model, partitioned for one device. Inputs absent from `inputs` are parameters, rows or scalars.
  SpmdGraph cut(const Graph& whole, LayoutsByName inputs, const LayoutsByName& outputs) const;
  // The same for graphs that run after all microbatches: parameters stay as they are stored.
  SpmdGraph cut_stored(const Graph& whole, LayoutsByName inputs, const LayoutsByName& outputs) const;
  int add_function(const std::string& name, Graph graph, Bindings in, Bindings out,
                   std::vector<std::string> donated = {});
  // Bindings of the inputs that are not parameters.
  Bindings data_bindings(const Graph& graph, const std::string& prefix, bool by_microbatch) const;

  // --- gradients
  struct Backward {
    std::string name;
    const Graph& whole;
    bool adds;     // accumulates into the gradients
    bool by_slot;  // the action selects the slot of the gradients
    std::span<const Parameter> parameters;
    Bindings in, out;               // of everything but parameter gradients
    std::vector<std::string> dead;  // inputs with no later reader
    LayoutsByName inputs, outputs;  // layouts for `in` and `out`
  };
  void add_backward(Backward part);
  void add_zero();  // "zero": clears all gradients
  // The value that holds the gradient summed over devices: the gradient itself, unless the shard is smaller.
  std::string reduced_name(const Parameter& p) const;
  // "reduce": sums gradients over the devices; each device keeps the shard that it updates. One device needs none.
  void add_reduce();

  // --- update
  // `squares_given`: the value "square_sum" holds the sum of squares of all gradients.
  void add_update(bool squares_given);

 private:
  std::vector<Pass> typing_passes() const;  // of the loss graph and the evaluation graph
  SpmdGraph cut_by(std::span<const AxisRule> rules, const Graph& whole, LayoutsByName inputs, LayoutsByName used,
                   const LayoutsByName& outputs, bool fill) const;
  // The backward graph with gradients in the reduce type; if `adds`, added to those of earlier microbatches.
  Graph in_reduce_type(const Backward& part) const;
  void add_gradients();
  std::vector<std::string> states_of(const Parameter& p) const { return state_names(strategy_.optimizer, p); }
  void add_state();
  void add_snapshot();

  const Strategy& strategy_;
  TrainingLayouts layouts_;
  ProgramBuilder builder_;
  const TrainingPolicy* policy_ = nullptr;
  std::vector<Parameter> trained_;
  DType scalar_ = DType::f32;
  DType moment_ = DType::f32;
};

}  // namespace systole
