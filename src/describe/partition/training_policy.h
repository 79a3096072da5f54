#pragma once
// What plain, exact and pipelined training steps do differently. TrainingBuilder calls a policy in a fixed order and
// never asks which one it has. Internal to the partitioner.
//
//   plain     training_plain.cc     the whole model, microbatches one after the other
//   exact     training_exact.cc     the whole model; sums by a tree over logical shards (exact.h)
//   pipeline  training_pipeline.cc  the chunks of one stage, and transfers between stages (pipeline.h)

#include <memory>

#include "describe/partition/training_builder.h"

namespace systole {

class TrainingPolicy {
 public:
  explicit TrainingPolicy(TrainingBuilder& builder) : builder_(builder) {}
  TrainingPolicy(const TrainingPolicy&) = delete;
  TrainingPolicy& operator=(const TrainingPolicy&) = delete;
  virtual ~TrainingPolicy() = default;

  // --- layouts on the mesh
  // Layout of a tensor of the batch.
  virtual Layout rows(const Type& type) const { return builder_.layouts().rows(type); }
  // Layout of a gradient, until it is reduced.
  virtual Layout gradient(const Parameter& p) const { return builder_.layouts().gradient(p); }
  // Sharding rules of forward, backward and evaluation.
  virtual std::span<const AxisRule> rules() const { return builder_.layouts().rules(); }
  // A repeat may carry partial sums (SpmdRequest::terms).
  virtual bool carries_partial_sums() const { return true; }
  // The number of partial sums of a gradient held at once. REQUIRES: add_inputs was called.
  virtual int gradient_slots() const { return 1; }

  // --- parts of the Program, in call order
  // `loss` and `evaluation` are typed: precision is applied.
  virtual void add_inputs(const Graph& loss) = 0;  // parameters, and inputs of a microbatch
  virtual void add_outputs() = 0;                  // "loss", and the other outputs of the loss graph
  virtual void add_forward_backward(const Graph& loss) = 0;
  virtual void add_update() = 0;    // everything after the last microbatch: sums over devices, norm, update
  virtual void add_schedule() = 0;  // "train"
  // Inputs, functions and schedule of a step of other rows.
  virtual void add_shape(std::int64_t length, const Graph& loss) = 0;
  virtual void add_evaluation(Graph evaluation) = 0;  // functions and schedule

 protected:
  TrainingBuilder& builder_;
};

std::unique_ptr<TrainingPolicy> plain_training(TrainingBuilder& builder);
// For the logical shards of `device`. Errors: as exact_workers.
std::unique_ptr<TrainingPolicy> exact_training(TrainingBuilder& builder, std::int64_t device);
// For the stage of `device`. REQUIRES: `pipeline.stages` is set.
std::unique_ptr<TrainingPolicy> pipeline_training(TrainingBuilder& builder, const PipelineStrategy& pipeline,
                                                  std::int64_t device);

}  // namespace systole
