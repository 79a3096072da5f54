#include "predict/plan/bounds.h"

#include <algorithm>

#include "describe/graph/layer_names.h"
#include "describe/graph/partition/update.h"
#include "predict/perf/device_memory.h"
#include "predict/perf/step_time.h"

namespace systole {
namespace {

bool has_dim(const Type& type, std::string_view name) {
  for (int dim = 0; dim < type.ndim(); ++dim)
    if (type.name(dim) == name) return true;
  return false;
}

}  // namespace

Bounds::Bounds(const Composer& composer) : composer_(composer) {
  const Model& model = composer.model();
  const Strategy strategy = strategy_of(composer.asked());
  std::int64_t tokens = std::max<std::int64_t>(1, model.context()), width = 0;
  if (model.target_context() > 0) tokens = std::min(tokens, model.target_context());
  for (const Parameter& p : model.parameters()) {
    elements_ += p.type.num_elements();
    if (p.trainable) {
      trained_ += p.type.num_elements();
      state_bytes_ = static_cast<std::int64_t>(state_names(strategy.optimizer, p).size()) * size_of(DType::f32);
    }
    // A matrix of each layer that every token is multiplied by; experts see some tokens only.
    if (!layer_name(p.name) || p.type.ndim() < 3 || has_dim(p.type, "expert")) continue;
    const double once = 2 * static_cast<double>(p.type.num_elements()) * static_cast<double>(tokens);
    forward_ += once;
    backward_ += p.trainable ? 2 * once : 0;
    for (int dim = 1; dim < p.type.ndim(); ++dim)
      if (p.type.name(dim) == "embed") width = p.type.size(dim);
  }
  carried_ = tokens * width * size_of(strategy.precision.compute);
}

Seconds Bounds::seconds(double flops, const Accelerator& chip, const KernelChoice& kernels,
                        const StackProfile& stack) const {
  const Accelerator::Products& products = products_of(chip, kernels.products);
  return Seconds(flops / (products.peak.count() * products.reached * products_share(kernels, stack)));
}

Seconds Bounds::time(std::int64_t devices, const Accelerator& chip, const KernelChoice& kernels,
                     const StackProfile& stack) const {
  const double rows = static_cast<double>(composer_.asked().train.batch);
  return seconds((forward_ + backward_) * rows / static_cast<double>(devices), chip, kernels, stack);
}

Seconds Bounds::time(const Candidate& candidate, const Accelerator& chip, const KernelChoice& kernels,
                     const StackProfile& stack) const {
  const bool again = candidate.recompute == RecomputeSpec::Kind::block;
  const double layers = static_cast<double>(composer_.layers());
  // Of a microbatch, of a layer.
  const Seconds layer = seconds((forward_ * (again ? 2 : 1) + backward_) / layers *
                                    static_cast<double>(local_rows(composer_.asked().train.batch, candidate)) /
                                    static_cast<double>(candidate.model),
                                chip, kernels, stack);
  const std::int64_t chunks = candidate.pipe * candidate.chunks, least = composer_.layers() / chunks,
                     most = (composer_.layers() + candidate.pipe - 1) / candidate.pipe;
  const std::int64_t through = least * (candidate.microbatches * candidate.chunks + candidate.pipe - 1);
  return layer * std::max(most * candidate.microbatches, through);
}

Bytes Bounds::memory(const Candidate& candidate, const KernelChoice& kernels, const StackProfile& stack) const {
  const std::int64_t parts = candidate.pipe * candidate.model;
  const std::int64_t all = elements_ / parts, trained = trained_ / parts;
  const auto stored = [&](std::int64_t bytes, StoredInParts least) {
    return candidate.stored >= least ? bytes / candidate.fsdp : bytes;
  };
  const Precision& precision = strategy_of(composer_.asked()).precision;
  const bool copied = kernels.half_copies && precision.parameter == DType::f32;
  MemoryParts memory;
  // Copies in 16 bits where they are read, and in f32 where they are updated.
  memory.arena = Bytes(copied ? stored(2 * all, StoredInParts::parameters) + stored(4 * trained, StoredInParts::state)
                              : stored(all * size_of(precision.parameter), StoredInParts::parameters));
  memory.arena += Bytes(stored(trained * state_bytes_, StoredInParts::state) +
                        stored(trained * size_of(precision.reduce), StoredInParts::gradients));
  const std::int64_t under_way =
      candidate.chunks > 1 ? 1 : std::min(candidate.microbatches, candidate.pipe);  // of the first stage
  memory.arena += Bytes(carried_ * local_rows(composer_.asked().train.batch, candidate) / candidate.model *
                        (composer_.layers() / candidate.pipe) * under_way);
  return device_memory(memory, stack).total();
}

}  // namespace systole
