#include "predict/plan/bounds.h"

#include <algorithm>
#include <cmath>

#include "describe/ir/layer_names.h"
#include "describe/partition/update.h"
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
  if (!composer.shapes().empty()) {
    for (const StepsOfLength& steps : composer.steps())
      of_lengths_.emplace_back(std::make_unique<const Bounds>(*steps.composer), steps.share);
    return;
  }
  const Model& model = composer.model();
  const Strategy strategy = strategy_of(composer.asked());
  precision_ = strategy.precision;
  std::int64_t tokens = model.sequence_length(), width = 0;
  if (model.target_context() > 0) tokens = std::min(tokens, model.target_context());
  if (composer.length() > 0) tokens = composer.length();
  for (const Parameter& p : model.parameters()) {
    elements_ += p.type.num_elements();
    if (p.trainable) {
      trained_ += p.type.num_elements();
      state_bytes_ = static_cast<std::int64_t>(state_names(strategy.optimizer, p).size()) * size_of(DType::f32);
    }
    // A matrix of each layer that multiplies every token; experts see only some tokens.
    if (!layer_name(p.name) || p.type.ndim() < 3 || has_dim(p.type, "expert")) continue;
    const double once = 2 * static_cast<double>(p.type.num_elements()) * static_cast<double>(tokens);
    forward_ += once;
    backward_ += p.trainable ? 2 * once : 0;
    for (int dim = 1; dim < p.type.ndim(); ++dim)
      if (p.type.name(dim) == "embed") width = p.type.size(dim);
  }
  carried_ = tokens * width * size_of(strategy.precision.compute);
}

Seconds Bounds::time(double flops, const Accelerator& chip, const KernelChoice& kernels,
                     const StackProfile& stack) const {
  const Accelerator::Products& products = products_of(chip, kernels.products);
  return Seconds(flops / (products.peak.count() * products.reached * products_share(kernels, stack)));
}

Seconds Bounds::time(std::int64_t devices, const Accelerator& chip, const KernelChoice& kernels,
                     const StackProfile& stack) const {
  if (!of_lengths_.empty())
    return Seconds(mean_of([&](const Bounds& one) { return one.time(devices, chip, kernels, stack).count(); }));
  const double rows = static_cast<double>(composer_.asked().train.batch);
  return time((forward_ + backward_) * rows / static_cast<double>(devices), chip, kernels, stack);
}

// The longest stage: the first microbatch passes the layers of the stages before it, then the stage runs its own layers
// for every microbatch. Its last backward is followed by those of the layers before it.
std::int64_t Bounds::layers_in_turn(const Candidate& candidate) const {
  if (!candidate.staged()) return composer_.layers() * candidate.microbatches;
  const std::array<std::int64_t, 3> key{candidate.pipe, candidate.chunks, candidate.microbatches};
  const std::lock_guard lock(mutex_);
  const auto [at, first] = layers_in_turn_.try_emplace(key, 0);
  if (!first) return at->second;
  const std::vector<std::int64_t> layers = layers_of_chunks(pipeline_of(candidate), composer_.layers());
  std::int64_t before = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(candidate.pipe); ++s) {
    std::int64_t own = 0;
    for (std::size_t c = s; c < layers.size(); c += static_cast<std::size_t>(candidate.pipe)) own += layers[c];
    at->second = std::max(at->second, before + own * candidate.microbatches);
    before += layers[s];
  }
  return at->second;
}

// A lower bound on what runs in sequence, in microbatches of the whole model, for any split into stages. A stage that
// begins later must have less work if it is not to end later. If the end is M, work that shrinks by 1/microbatches from
// stage to stage adds up to (1 - (1 - 1/microbatches)^stages) M, and no split has more.
double Bounds::wholes_in_turn(const Candidate& candidate) const {
  const auto microbatches = static_cast<double>(candidate.microbatches), stages = static_cast<double>(candidate.pipe);
  if (stages == 1) return microbatches;
  if (candidate.chunks > 1) return std::max(microbatches / stages, 1.0);
  return 1 / (1 - std::pow(1 - 1 / microbatches, stages));
}

double Bounds::flops(const Candidate& candidate) const {
  if (!of_lengths_.empty()) return mean_of([&](const Bounds& one) { return one.flops(candidate); });
  if (candidate.staged() && !composer_.one_stack()) {
    return (forward_ + backward_) * wholes_in_turn(candidate) *
           static_cast<double>(local_rows(composer_.asked().train.batch, candidate)) /
           static_cast<double>(candidate.model * candidate.context);
  }
  // Per microbatch and layer. Recomputation leaves out products whose results are not needed again.
  const double layer = (forward_ + backward_) / static_cast<double>(std::max<std::int64_t>(1, composer_.layers())) *
                       static_cast<double>(local_rows(composer_.asked().train.batch, candidate)) /
                       static_cast<double>(candidate.model * candidate.context);
  return layer * static_cast<double>(layers_in_turn(candidate));
}

Bytes Bounds::arena(const Candidate& candidate, bool half_copies) const {
  if (!of_lengths_.empty()) {
    Bytes most;
    for (const auto& [one, share] : of_lengths_) most = std::max(most, one->arena(candidate, half_copies));
    return most;
  }
  if (candidate.staged() && !composer_.one_stack()) return arena(candidate, 0, half_copies);
  const std::int64_t rows = local_rows(composer_.asked().train.batch, candidate);
  return arena(candidate, kept_by_whole_layer(candidate.recompute, rows) / (candidate.model * candidate.context),
               half_copies);
}

// Devices along `model` and `context` save at least their share of what one device saves.
std::int64_t Bounds::kept_by_whole_layer(RecomputeSpec::Kind recompute, std::int64_t rows) const {
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_by_whole_layers_.find({recompute, rows});
    if (found != kept_by_whole_layers_.end()) return found->second;
  }
  Candidate alone;
  alone.recompute = recompute;
  const Result<ChunkPiece> layers = composer_.layers_at_least(alone, rows);
  const std::int64_t kept = std::max(carried_ * rows, layers.ok() ? layers->kept_by_layer : 0);
  const std::lock_guard lock(mutex_);
  kept_by_whole_layers_.try_emplace({recompute, rows}, kept);
  return kept;
}

// Layers of the first stage, times its microbatches in flight.
std::int64_t Bounds::layers_kept(const Candidate& candidate) const {
  if (!candidate.staged()) return composer_.layers();
  const std::int64_t least = composer_.layers() / (candidate.pipe * candidate.chunks);
  std::int64_t kept = 0;
  for (const int slots : composer_.in_flight(pipeline_of(candidate), candidate.microbatches)[0]) kept += slots * least;
  return kept;
}

Bytes Bounds::arena(const Candidate& candidate, std::int64_t kept, bool half_copies) const {
  const std::int64_t parts = candidate.pipe * candidate.expert * candidate.model;
  const std::int64_t all = elements_ / parts, trained = trained_ / parts;
  const auto stored = [&](std::int64_t bytes, ZeroStage least) {
    return candidate.stored >= least ? bytes / candidate.fsdp : bytes;
  };
  const bool copied = half_copies && precision_.parameter == DType::f32;
  // Copies in 16 bits where parameters are read, and in f32 where they are updated.
  const std::int64_t parameters = copied
                                      ? stored(2 * all, ZeroStage::parameters) + stored(4 * trained, ZeroStage::state)
                                      : stored(all * size_of(precision_.parameter), ZeroStage::parameters);
  return Bytes(parameters + stored(trained * state_bytes_, ZeroStage::state) +
               stored(trained * size_of(precision_.reduce), ZeroStage::gradients) + kept * layers_kept(candidate));
}

Result<Bounds::LayerCost> Bounds::layer_cost(const Candidate& candidate, std::int64_t rows, const Cluster& cluster,
                                             const KernelChoice& kernels) const {
  const ChunkPiece model = TRY(composer_.layers_at_least(candidate, rows));
  const std::int64_t parts = composer_.parts_at_least(candidate);
  LayerCost cost;
  cost.kept = model.kept_by_layer;
  cost.live = model.live_in_layers;
  StageRecord stage;
  stage.chunks.push_back(model.work);
  std::vector<std::vector<MessageGroup>> stored;
  for (FunctionRecord* function : {&stage.chunks[0].forward, &stage.chunks[0].backward}) {
    for (StretchRecord& stretch : *function) {
      std::vector<MessageGroup>& groups = stored.emplace_back();
      std::erase_if(stretch.messages, [&](const MessageRecord& message) {
        if (message.carried != CarriedKind::parameters && message.carried != CarriedKind::gradients) return false;
        const double halved = message.parameter && kernels.half_copies ? 0.5 : 1;
        const double whole = message.kind == CollectiveKind::all_gather ? static_cast<double>(parts) : 1;
        if (message.axes == "fsdp" && stretch.in_layers)
          groups.push_back({message.kind, message.carried, halved * whole * static_cast<double>(message.bytes),
                            message.starts ? 1.0 : 0});
        return true;
      });
    }
  }
  const StepRecord step{Mesh::of(mesh_of(candidate)).value(),
                        PipelineStrategy(),
                        1,
                        {std::make_shared<const StageRecord>(std::move(stage))}};
  cost.step = step_parts(step, cluster, kernels);
  for (const FunctionParts* function : {&cost.step.chunks[0].forward, &cost.step.chunks[0].backward}) {
    for (const StretchParts& stretch : *function) {
      LayerCost::Stretch& own = cost.stretches.emplace_back();
      own.once = stretch.once;
      own.once.kernels = 0;
      own.times = stretch.times;
      own.layer = stretch.once.layers > 0;
      own.stored = std::move(stored[cost.stretches.size() - 1]);
    }
  }
  cost.step.chunks.clear();
  return cost;
}

Bounds::LayerKey Bounds::layer_key(const Candidate& candidate, std::size_t offer) const {
  if (!of_lengths_.empty()) return of_lengths_.back().first->layer_key(candidate, offer);
  return {static_cast<std::int64_t>(offer),
          candidate.context,
          candidate.expert,
          candidate.model,
          static_cast<std::int64_t>(candidate.recompute),
          local_rows(composer_.asked().train.batch, candidate),
          candidate.microbatches > 1};
}

bool Bounds::is_known(const LayerKey& layer) const {
  if (!of_lengths_.empty()) return of_lengths_.back().first->is_known(layer);
  const std::lock_guard lock(mutex_);
  return layer_costs_.contains(layer);
}

const Result<Bounds::LayerCost>& Bounds::known_layer_cost(const Candidate& candidate, std::size_t offer,
                                                          const Cluster& cluster, const KernelChoice& kernels) const {
  const LayerKey key = layer_key(candidate, offer);
  {
    const std::lock_guard lock(mutex_);
    const auto found = layer_costs_.find(key);
    if (found != layer_costs_.end()) return found->second;
  }
  Result<LayerCost> made =
      layer_cost(candidate, local_rows(composer_.asked().train.batch, candidate), cluster, kernels);
  const std::lock_guard lock(mutex_);
  return layer_costs_.emplace(key, std::move(made)).first->second;
}

class Bounds::Links {
 public:
  Links(const Bounds& bounds, const Candidate& candidate, std::size_t offer, const Cluster& of_offer)
      : cluster(of_offer), bounds_(bounds), candidate_(candidate), offer_(offer) {}

  GroupLinks over(const char* axis) const {
    const Candidate& c = candidate_;
    const std::array<std::int64_t, 8> key{static_cast<std::int64_t>(offer_),
                                          axis[0],  // no two axes begin alike
                                          c.pipe,
                                          c.data,
                                          c.fsdp,
                                          c.context,
                                          c.expert,
                                          c.model};
    const std::lock_guard lock(bounds_.mutex_);
    const auto found = bounds_.links_.find(key);
    if (found != bounds_.links_.end()) return found->second;
    return bounds_.links_.emplace(key, links_of(cluster, Mesh::of(mesh_of(c)).value(), axis)).first->second;
  }

  const Cluster& cluster;

 private:
  const Bounds& bounds_;
  const Candidate& candidate_;
  const std::size_t offer_;
};

FunctionParts Bounds::after(const Candidate& candidate, const Links& links, const KernelChoice& kernels) const {
  const auto own = static_cast<double>(trained_ / (candidate.pipe * candidate.expert * candidate.model));
  const auto fsdp = static_cast<double>(candidate.fsdp);
  const double whole = own * static_cast<double>(size_of(precision_.reduce));
  WorkParts sent;
  const auto add = [&](CollectiveKind kind, CarriedKind carried, double bytes, const char* axis) {
    add_messages({kind, carried, bytes, 1.0}, links.over(axis), links.cluster, sent);
  };
  if (candidate.fsdp > 1 && candidate.stored == ZeroStage::state)
    add(CollectiveKind::reduce_scatter, CarriedKind::gradients, whole, "fsdp");
  if (candidate.data > 1) add(CollectiveKind::all_reduce, CarriedKind::gradients, whole / fsdp, "data");
  if (candidate.context > 1) add(CollectiveKind::all_reduce, CarriedKind::gradients, whole / fsdp, kContextAxis);
  if (candidate.fsdp > 1 && candidate.stored < ZeroStage::parameters) {
    const double halved = kernels.half_copies && precision_.parameter == DType::f32 ? 0.5 : 1;
    add(CollectiveKind::all_gather, CarriedKind::parameters,
        halved * own * static_cast<double>(size_of(precision_.parameter)) / fsdp, "fsdp");
  }
  sent.kernels = 0;
  return {{sent, 1}};
}

double Bounds::handing_on(const Candidate& candidate, const Links& links, const StackProfile& stack) const {
  const std::int64_t rows = local_rows(composer_.asked().train.batch, candidate);
  MessageParts message;
  add_handover(static_cast<double>(carried_ * rows / (candidate.context * candidate.model)), links.over(kPipelineAxis),
               links.cluster, message);
  return handing_on_time(message, stack);
}

Result<Bounds::Floor> Bounds::floor(const Candidate& candidate, std::size_t offer, const Cluster& cluster,
                                    const KernelChoice& kernels, const StackProfile& stack) const {
  if (!of_lengths_.empty()) {
    Floor mean;
    for (const auto& [one, share] : of_lengths_) {
      const Floor floor = TRY(one->floor(candidate, offer, cluster, kernels, stack));
      mean.time += floor.time * share;
      mean.memory = std::max(mean.memory, floor.memory);
    }
    return mean;
  }
  const Result<LayerCost>& known = known_layer_cost(candidate, offer, cluster, kernels);
  if (!known.ok()) return known.error();
  const LayerCost& cost = known.value();
  const bool sends = candidate.fsdp > 1 && candidate.stored >= ZeroStage::gradients;
  const Links links(*this, candidate, offer, cluster);
  const GroupLinks fsdp = sends ? links.over("fsdp") : GroupLinks();
  double layer = 0, all = 0;
  for (const LayerCost::Stretch& stretch : cost.stretches) {
    WorkParts once = stretch.once;
    for (MessageGroup group : stretch.stored) {
      if (!sends || (group.carried == CarriedKind::parameters && candidate.stored < ZeroStage::parameters)) continue;
      if (group.kind == CollectiveKind::all_gather) group.bytes /= static_cast<double>(candidate.fsdp);
      add_messages(group, fsdp, cluster, once);
    }
    once.kernels = 0;
    const double seconds = work_time({{once, 1}}, cost.step, stack).seconds;
    if (stretch.layer) layer += seconds;
    all += seconds * stretch.times;
  }
  const bool of_layers = candidate.staged() && composer_.one_stack();
  double seconds = of_layers ? layer * static_cast<double>(layers_in_turn(candidate)) : all * wholes_in_turn(candidate);
  // Each chunk of a stage sends forward and backward, except the model's first and last.
  if (of_layers)
    seconds +=
        static_cast<double>(candidate.microbatches * (2 * candidate.chunks - 1)) * handing_on(candidate, links, stack);
  // A step longer than this bound hides more of the work after it, but at most by the difference.
  seconds += after_time(after(candidate, links, kernels), seconds, cost.step, stack).seconds;
  seconds += fixed_time(seconds, cost.step, stack);
  MemoryParts memory;
  memory.arena = arena(candidate, candidate.staged() && !composer_.one_stack() ? 0 : cost.kept, kernels.half_copies);
  const bool loops =
      composer_.one_stack() && composer_.layers() / (candidate.pipe * candidate.chunks) > 1;  // for every chunk
  if (loops && candidate.fsdp > 1 && candidate.stored == ZeroStage::parameters) memory.arena += Bytes(cost.live);
  return Floor{Seconds(seconds), device_memory(memory, stack).total()};
}

}  // namespace systole
