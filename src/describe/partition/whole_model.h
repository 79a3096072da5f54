#pragma once
// Plain and exact steps share this: every device computes the whole model, not a stage's chunks. Internal to the
// partitioner.

#include <functional>
#include <string>
#include <vector>

#include "describe/autodiff/autodiff.h"
#include "describe/partition/training_builder.h"

namespace systole {

class WholeModel {
 public:
  // `prefix`: of the names of its inputs and residuals; `suffix`: of those of its functions.
  explicit WholeModel(TrainingBuilder& builder, std::string prefix = "", std::string suffix = "")
      : builder_(builder), prefix_(std::move(prefix)), suffix_(std::move(suffix)) {}

  // Parameters, and the batch in `slots` slots.
  void add_inputs(const Graph& loss, int slots);
  // Outputs of the loss graph, sums over rows: "loss" first. Known after add_inputs.
  const std::vector<std::string>& sums() const { return sums_; }
  // "forward", its probes and residuals. `value_of`: the value for each of the sums.
  void add_forward(const Graph& loss, const std::function<std::string(const std::string&)>& value_of);
  // REQUIRES: add_forward was called. `adds`, `by_slot`: as in TrainingBuilder::Backward.
  void add_backward(const std::string& name, bool adds, bool by_slot);

  struct Evaluation {
    Graph graph;  // of one device
    Bindings in;
  };
  // Adds the inputs, in `slots` slots, and the output value. Returns the graph, not yet a function.
  Evaluation add_evaluation(Graph evaluation, int slots, bool by_microbatch);

 private:
  std::vector<std::string> also_probed() const;

  TrainingBuilder& builder_;
  std::string prefix_, suffix_;
  std::vector<std::string> sums_;
  Graph backward_{"backward"};
  Bindings backward_in_;
  std::vector<std::string> residuals_;
  LayoutsByName residual_layouts_;
};

}  // namespace systole
