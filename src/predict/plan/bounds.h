#pragma once
// What no step of a candidate falls below, so that most candidates need not even be composed. The law search-is-program
// holds all bounds to be none above the exact value. First out of the model's parameters alone, in nanoseconds:
//
//   time    the products of layers, each token once forward and twice backward, at what the chip reaches in its best
//           products; in a pipeline the first microbatch goes through all stages before the last, and the last one's
//           gradients through all behind it
//   memory  parameters, the optimizer's state and gradients of an even part of the model, and what each layer of one
//           device alone keeps for backward, an even part of it, of as many microbatches as the first stage has under
//           way
//
// Then, for those that this lets through, out of a layer of a real Program with the same model, context, expert and
// recompute (composed.h), in microseconds: its products at their shapes, attention, bytes and messages of activations,
// of parameters and gradients where each microbatch sends them, and what it keeps for backward; what an even part of
// the model gives to other stages and, after all microbatches, sends of gradients and parameters. Launches, norms and
// updates are left out.

#include <map>
#include <mutex>

#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"
#include "predict/plan/composed.h"

namespace systole {

class Bounds {
 public:
  // `composer` outlives this.
  explicit Bounds(const Composer& composer);

  // FLOPs that a device does one after the other, at least; and how long so many take.
  double flops(const Candidate& candidate) const;
  Seconds time(double flops, const Accelerator& chip, const KernelChoice& kernels, const StackProfile& stack) const;
  // Of any candidate on so many devices.
  Seconds time(std::int64_t devices, const Accelerator& chip, const KernelChoice& kernels,
               const StackProfile& stack) const;
  Bytes arena(const Candidate& candidate, bool half_copies) const;  // of the memory

  struct Floor {
    Seconds time;
    Bytes memory;
  };
  // Out of a layer's Program. `offer`: a number of the cluster, kernels and stack, for all calls the same; each layer
  // is priced once. Thread-safe. Errors: as make_job; unsupported: what is no function of rows.
  Result<Floor> floor(const Candidate& candidate, std::size_t offer, const Cluster& cluster,
                      const KernelChoice& kernels, const StackProfile& stack) const;
  // What of a candidate floor() makes a Program of the first time.
  using LayerKey = std::array<std::int64_t, 7>;  // offer, context, expert, model, recompute, rows, several microbatches
  LayerKey layer_key(const Candidate& candidate, std::size_t offer) const;
  bool is_known(const LayerKey& layer) const;

 private:
  // Of a microbatch.
  struct LayerCost {
    struct Stretch {
      WorkParts once;  // without launches
      double times = 1;
      bool layer = false;
      std::vector<MessageGroup> stored;  // of parameters and gradients in parts; bytes of the whole
    };
    StepParts step;  // without its work
    std::vector<Stretch> stretches;
    std::int64_t kept = 0;  // bytes of a layer for backward
    std::int64_t live = 0;  // and that its backward works in, of parameters in parts
  };
  std::int64_t kept_by_whole_layer(RecomputeSpec::Kind recompute, std::int64_t rows) const;
  Result<LayerCost> layer_cost(const Candidate& candidate, std::int64_t rows, const Cluster& cluster,
                               const KernelChoice& kernels) const;
  const Result<LayerCost>& known_layer_cost(const Candidate& candidate, std::size_t offer, const Cluster& cluster,
                                            const KernelChoice& kernels) const;
  // Of an offer's cluster, over axes of a candidate's mesh.
  class Links;
  // What comes after all microbatches: messages of gradients and updated parameters of an even part of the model.
  FunctionParts after(const Candidate& candidate, const Links& links, const KernelChoice& kernels) const;
  // A message of a microbatch between stages.
  double handing_on(const Candidate& candidate, const Links& links, const StackProfile& stack) const;
  // How often one after the other the layers of a stage are gone through, at least.
  std::int64_t layers_in_turn(const Candidate& candidate) const;
  double wholes_in_turn(const Candidate& candidate) const;
  std::int64_t layers_kept(const Candidate& candidate) const;
  Bytes arena(const Candidate& candidate, std::int64_t kept, bool half_copies) const;

  const Composer& composer_;
  Precision precision_;
  std::int64_t elements_ = 0, trained_ = 0, state_bytes_ = 0;  // state_bytes_: of a trained number
  std::int64_t carried_ = 0;                                   // bytes of a row between two layers
  double forward_ = 0, backward_ = 0;                          // FLOPs of a row, of all layers
  mutable std::mutex mutex_;
  mutable std::map<std::array<std::int64_t, 3>, std::int64_t> layers_in_turn_;  // by pipe, chunks and microbatches
  mutable std::map<LayerKey, Result<LayerCost>> layer_costs_;
  // By offer, axis, and the sizes of pipe, data, fsdp, context, expert, model.
  mutable std::map<std::array<std::int64_t, 8>, GroupLinks> links_;
  mutable std::map<std::pair<RecomputeSpec::Kind, std::int64_t>, std::int64_t> kept_by_whole_layers_;
};

}  // namespace systole
