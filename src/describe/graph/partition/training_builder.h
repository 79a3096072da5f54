#pragma once
// Builds the Program of a training step; within the partitioner only. What every training has is in training.cc, what
// exact training does in its place in training_exact.cc, what a stage of a pipeline does in training_pipeline.cc.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "describe/graph/partition/chunks.h"
#include "describe/graph/partition/exact.h"
#include "describe/graph/partition/exact_graphs.h"
#include "describe/graph/partition/spmd.h"
#include "describe/graph/partition/training.h"
#include "describe/graph/partition/update.h"

namespace systole {

using LayoutsByName = std::map<std::string, Layout>;

class TrainingBuilder {
 public:
  TrainingBuilder(const std::string& name, const Mesh& mesh, const Strategy& strategy, const Target& target,
                  const WorkspaceOf& workspace_of, std::int64_t device);
  Program build(const Graph& loss, const std::optional<Graph>& evaluation);

 private:
  static std::string of_shard(const std::string& output) { return "shard_" + output; }
  static constexpr const char* kStageLoss = "stage_loss";

  int microbatches() const { return strategy_.microbatches; }
  bool alone() const { return layouts_.mesh().trivial(); }
  bool exact() const { return strategy_.logical_shards > 0; }
  bool staged() const { return pipeline_.num_chunks() > 1; }
  // Of what comes by microbatch.
  int slots() const { return exact() ? turns_.turns() * microbatches() : microbatches(); }
  // Exact: all of it, whatever the rank keeps later; what it holds are sums of its shards.
  Layout gradient_layout(const Parameter& p) const { return exact() ? layouts_.whole() : layouts_.gradient(p); }
  Layout row_layout(const Type& type) const { return exact() ? layouts_.whole() : layouts_.rows(type); }

  // A value of which a device has the part that the layout says.
  void add_value(const std::string& name, const Type& whole, const Layout& layout, Residence residence, int slots,
                 std::optional<Parameter> parameter = std::nullopt);
  void add_parameters(const Graph& graph);
  // The graph of one device. Inputs that are not named are parameters, rows or scalars.
  SpmdGraph cut(const Graph& whole, LayoutsByName inputs, const LayoutsByName& outputs, bool fill = false) const;
  int add_function(const std::string& name, Graph graph, Bindings in, Bindings out,
                   std::vector<std::string> donated = {});
  DType reduce_type(const Parameter& p) const;

  void add_data_inputs(const Graph& graph, const std::string& prefix, int slots);
  void add_output(const std::string& name, DType dtype, int slots);
  Bindings data_bindings(const Graph& graph, const std::string& prefix, bool by_microbatch) const;
  void add_forward_backward(const Graph& typed);
  struct Backward {
    std::string name;
    const Graph& whole;
    bool adds;  // to the gradients that are there
    std::span<const Parameter> parameters;
    Bindings in, out;               // of what is no gradient of a parameter
    std::vector<std::string> dead;  // inputs that nobody reads afterwards
    LayoutsByName inputs, outputs;  // of the same
  };
  void add_backward(Backward part);
  // What a probe may name besides values of the graph: these are there anyway.
  std::vector<std::string> also_probed() const;
  // The backward graph with its gradients in the reduce type, or added to those that the microbatches before gave.
  Graph in_reduce_type(const Backward& part);
  void add_zero();

  std::vector<std::string> states_of(const Parameter& p) const { return state_names(strategy_.optimizer, p); }
  void add_state();
  // Where the sum of the devices' gradients lies: in the gradient's own place unless its parts are smaller.
  std::string reduced_name(const Parameter& p) const;
  // The devices' terms of each gradient added up, each device keeping the part that it updates.
  void add_reduce();
  void add_update();
  void add_train_schedule();
  void add_evaluation(const Graph& evaluation, std::span<const Pass> early);
  // The sum over all shards of what a shard's microbatches gave.
  Value summed_loss(Graph& g, const std::string& value, int microbatches, Bindings& in) const;
  // Along the axis that stores things in parts; -1: the gradient is whole.
  int stored_dim(const Parameter& p) const;
  // What has been summed by this worker joined with what the others have; then the norm.
  void add_exact_sums();
  void add_exact_evaluation(Graph typed, const Bindings& in);
  void add_merge();
  // Over whole gradients: parts are gathered, one parameter at a time.
  void add_norm();
  void add_exact_schedule();
  void add_snapshot();

  // --- of a stage of a pipeline
  void add_stage(const Graph& typed);  // its chunks, their parameters and inputs
  bool has_chunk(int chunk) const;
  Layout between_layout(const Type& whole) const;
  void add_chunks();
  void add_between(const Graph& graph, int slots);
  // `from`: what the chunk before gives and wants a cotangent of; `given`: what the next one gives a cotangent of.
  void add_chunk(int chunk, std::span<const std::string> from, std::span<const std::string> given);
  // `theirs`: what the other stage calls the values; empty: the same.
  int add_transfer(const std::string& name, bool sends, std::span<const std::string> values, std::int64_t by,
                   bool by_microbatch, std::span<const std::string> theirs = {});
  void add_transfers(const std::vector<std::vector<std::string>>& trained);
  void add_ties(Schedule& schedule);
  void add_stage_sums();
  void add_pipeline_schedule();
  void add_stage_evaluation(const Graph& typed);

  const Strategy& strategy_;
  TrainingLayouts layouts_;
  ProgramBuilder builder_;
  std::vector<Parameter> trained_;
  DType scalar_ = DType::f32;      // of losses
  DType moment_ = DType::f32;      // of norms and moments: as parameters are kept
  std::vector<std::string> sums_;  // what the loss's graph gives, sums over rows: "loss"; in no pipeline others too
  // Of a pipeline.
  PipelineStrategy pipeline_;
  int stage_ = 0;
  std::vector<Chunk> chunks_;                   // all
  std::vector<PipelineRow> rows_;               // of this stage
  std::map<std::string, std::set<int>> users_;  // of each parameter: the stages that have it
  // Of exact training.
  ExactWorkers workers_;
  ShardTurns turns_;
  std::vector<TreeStep> steps_;
};

}  // namespace systole
