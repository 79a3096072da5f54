#pragma once
// Lower bounds on a candidate's step time and memory, so that most candidates need not be composed. The law
// search-is-program checks that no bound exceeds the exact value.
//
// The first bounds come from the model's parameters alone and take nanoseconds:
//
//   time    the matrix products of the layers, each token once forward and twice backward, at the chip's best rate for
//           products. In a pipeline the first microbatch passes all stages before the last one starts, and the last
//           microbatch's gradients pass back through all of them
//   memory  an even share of the model's parameters, optimizer state and gradients, and the saved activations: per
//           layer an even share of what one device alone saves, for as many microbatches as are in flight in the first
//           stage
//
// Candidates that pass get tighter bounds from a layer of a real Program with the same model, context, expert and
// recompute (composed_cost.h), in microseconds. These count products at their shapes, attention, bytes and messages of
// activations, the parameters and gradients that each microbatch sends, and saved activations; also an even share of
// the model's transfers between stages, and of the gradients and parameters sent after all microbatches. They leave out
// launches, norms and updates.

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"
#include "predict/plan/composed_cost.h"

namespace systole {

class Bounds {
 public:
  // `composer` outlives this.
  explicit Bounds(const Composer& composer);

  // Lower bounds: the FLOPs that a device executes in sequence, and their time.
  double flops(const Candidate& candidate) const;
  Seconds time(double flops, const Accelerator& chip, const KernelChoice& kernels, const StackProfile& stack) const;
  // A lower bound for every candidate on this number of devices.
  Seconds time(std::int64_t devices, const Accelerator& chip, const KernelChoice& kernels,
               const StackProfile& stack) const;
  Bytes arena(const Candidate& candidate, bool half_copies) const;  // lower bound on memory

  struct Floor {
    Seconds time;
    Bytes memory;
  };
  // The bounds from a layer's Program. `offer` identifies the cluster, kernels and stack, alike in all calls; each
  // layer is priced once. Thread-safe. Errors: as make_job; unsupported: counts that are no function of rows.
  Result<Floor> floor(const Candidate& candidate, std::size_t offer, const Cluster& cluster,
                      const KernelChoice& kernels, const StackProfile& stack) const;
  // The part of a candidate for which floor() builds a Program on first use.
  using LayerKey = std::array<std::int64_t, 7>;  // offer, context, expert, model, recompute, rows, several microbatches
  LayerKey layer_key(const Candidate& candidate, std::size_t offer) const;
  bool is_known(const LayerKey& layer) const;

 private:
  // The cost of one microbatch.
  struct LayerCost {
    struct Stretch {
      WorkParts once;  // without launches
      double times = 1;
      bool layer = false;
      std::vector<MessageGroup> stored;  // of sharded parameters and gradients; bytes of the whole
    };
    StepParts step;  // without its work
    std::vector<Stretch> stretches;
    std::int64_t kept = 0;  // saved activations of a layer, bytes
    std::int64_t live = 0;  // bytes that a layer's backward works in, where parameters are sharded
  };
  // The mean of a bound over lengths of rows, by their shares.
  template <typename Of>
  double mean_of(const Of& of) const {
    double mean = 0;
    for (const auto& [bounds, share] : of_lengths_) mean += share * of(*bounds);
    return mean;
  }
  std::int64_t kept_by_whole_layer(RecomputeSpec::Kind recompute, std::int64_t rows) const;
  Result<LayerCost> layer_cost(const Candidate& candidate, std::int64_t rows, const Cluster& cluster,
                               const KernelChoice& kernels) const;
  const Result<LayerCost>& known_layer_cost(const Candidate& candidate, std::size_t offer, const Cluster& cluster,
                                            const KernelChoice& kernels) const;
  // The links of an offer's cluster along the axes of a candidate's mesh.
  class Links;
  // Work after all microbatches: messages of gradients and updated parameters of an even share of the model.
  FunctionParts after(const Candidate& candidate, const Links& links, const KernelChoice& kernels) const;
  // Seconds of one transfer of a microbatch between stages.
  double handing_on(const Candidate& candidate, const Links& links, const StackProfile& stack) const;
  // Lower bounds on what a stage runs in sequence, in layers and in whole microbatches.
  std::int64_t layers_in_turn(const Candidate& candidate) const;
  double wholes_in_turn(const Candidate& candidate) const;
  std::int64_t layers_kept(const Candidate& candidate) const;
  Bytes arena(const Candidate& candidate, std::int64_t kept, bool half_copies) const;

  const Composer& composer_;
  // Of each length of rows, with its share of the steps: time is their mean, memory the most. Empty: of one length.
  std::vector<std::pair<std::unique_ptr<const Bounds>, double>> of_lengths_;
  Precision precision_;
  std::int64_t elements_ = 0, trained_ = 0, state_bytes_ = 0;  // state_bytes_: per trained number
  std::int64_t carried_ = 0;                                   // bytes of a row between two layers
  double forward_ = 0, backward_ = 0;                          // FLOPs of a row in all layers
  mutable std::mutex mutex_;
  mutable std::map<std::array<std::int64_t, 3>, std::int64_t> layers_in_turn_;  // by pipe, chunks and microbatches
  mutable std::map<LayerKey, Result<LayerCost>> layer_costs_;
  // By offer, axis, and the sizes of pipe, data, fsdp, context, expert, model.
  mutable std::map<std::array<std::int64_t, 8>, GroupLinks> links_;
  mutable std::map<std::pair<RecomputeSpec::Kind, std::int64_t>, std::int64_t> kept_by_whole_layers_;
};

}  // namespace systole
