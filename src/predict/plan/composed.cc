#include "predict/plan/composed.h"

#include <algorithm>

#include "describe/graph/ops/ops.h"
#include "describe/graph/partition/builder.h"
#include "describe/graph/partition/chunks.h"
#include "describe/graph/passes/rewrite.h"
#include "describe/models/list.h"
#include "predict/perf/device_memory.h"

namespace systole {
namespace {

constexpr std::int64_t kRecordedStages = 3;  // the first, one in the middle, the last
constexpr std::int64_t kRecordedMicrobatches = 3;
constexpr std::int64_t kLeastFsdp = 2, kMostFsdp = 4096;

// Layers of the recorded chunks; `other`: which of each stage's chunks has another number of them, -1: none.
std::optional<std::vector<std::int64_t>> recorded_layers(std::int64_t layers, std::int64_t chunks_per_stage,
                                                         std::int64_t other) {
  const std::int64_t chunks = kRecordedStages * chunks_per_stage;
  for (const std::int64_t each : {2, 1}) {  // a repeat of one layer is no loop
    const std::int64_t rest = layers - each * chunks - 2 * chunks_per_stage;
    if (rest < 0) continue;
    std::vector<std::int64_t> of_chunks(static_cast<std::size_t>(chunks), each);
    for (std::size_t c = 1; c < of_chunks.size(); c += kRecordedStages) of_chunks[c] += 2;
    of_chunks[1] += rest;
    if (other >= 0) {
      const auto first = static_cast<std::size_t>(other * kRecordedStages);
      ++of_chunks[first];
      of_chunks[first + 1] -= 2;
      ++of_chunks[first + 2];
    }
    return of_chunks;
  }
  return std::nullopt;
}

std::vector<std::int64_t> of_stage(const std::vector<std::int64_t>& layers, std::int64_t stage, std::int64_t stages) {
  std::vector<std::int64_t> own;
  for (std::size_t c = static_cast<std::size_t>(stage); c < layers.size(); c += static_cast<std::size_t>(stages))
    own.push_back(layers[c]);
  return own;
}

}  // namespace

Bytes Composed::state_bytes(std::size_t stage) const {
  return Bytes(stages[stage]->memory.parameters + stages[stage]->memory.state);
}

Bytes Composed::memory_at_least(const KernelChoice& kernels, const StackProfile& stack) const {
  Bytes most;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    MemoryParts parts;
    parts.arena = arena[s];
    parts.copies = Bytes(kernels.half_copies ? stages[s]->memory.copies : 0);
    parts.logits = stages[s]->memory.logits;
    most = std::max(most, device_memory(parts, stack).total());
  }
  return most;
}

Composer::Composer(Workload asked, Target target)
    : asked_(std::move(asked)), target_(std::move(target)), model_(make_model(asked_.model)) {
  const Graph loss = model_->loss({1, std::max<std::int64_t>(1, model_->context())}, true);
  layers_ = num_layers(loss);
  one_repeat_ = std::ranges::count_if(loss.nodes(), [](const GraphNode& node) { return is(node, "repeat"); }) == 1;
}

bool Composer::divides(std::int64_t fsdp, std::int64_t model) const {
  const std::lock_guard lock(mutex_);
  const auto [at, first] = divides_.try_emplace({fsdp, model}, true);
  if (!first) return at->second;
  const ShardingStrategy sharding = strategy_of(asked_).sharding;
  const Mesh mesh = without_single_axes(Mesh::make({{"fsdp", fsdp}, {"model", model}}).value());
  const ShardingStrategy stored = [&] {
    ShardingStrategy all = sharding;
    all.stored = ShardingStrategy::Stored::parameters;
    return all;
  }();
  const TrainingLayouts layouts(mesh, stored);
  for (const Parameter& p : model_->parameters())
    at->second = at->second && systole::divides(p.type, layouts.parameter(p), mesh);
  return at->second;
}

std::int64_t Composer::largest_fsdp(std::int64_t model) const {
  std::int64_t most = 1;
  while (most < kMostFsdp && divides(most * 2, model)) most *= 2;
  return most;
}

Composer::Key Composer::key_of(const Candidate& candidate, std::int64_t rows) const {
  Key key{candidate, rows, true};
  Candidate& family = key.canonical;
  family.layers.clear();
  family.schedule = PipelineSpec::Schedule::one_f_one_b;
  if (candidate.staged()) family.pipe = kRecordedStages;
  family.data = std::min<std::int64_t>(candidate.data, 2);
  family.microbatches = candidate.staged() ? kRecordedMicrobatches : std::min<std::int64_t>(candidate.microbatches, 2);
  if (candidate.fsdp == 1) {
    family.stored = StoredInParts::nothing;
  } else if (candidate.stored == StoredInParts::nothing) {
    family.fsdp = kLeastFsdp;
  } else if (divides(candidate.fsdp, candidate.model) && largest_fsdp(candidate.model) > kLeastFsdp &&
             candidate.fsdp <= largest_fsdp(candidate.model)) {
    family.fsdp = kLeastFsdp;
    key.of_one_fsdp = false;
  }
  return key;
}

const Composer::Family& Composer::family_of(const Key& key) const {
  Family* family = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Family>& at = families_[key];
    if (at == nullptr) at = std::make_unique<Family>();
    family = at.get();
  }
  std::call_once(family->once, [&] { record(key, *family); });
  return *family;
}

void Composer::record(const Key& key, Family& family) const {
  const Candidate& canonical = key.canonical;
  const auto stages = static_cast<std::size_t>(canonical.pipe);
  std::vector<std::vector<StageFamily::Corner>> corners(stages);
  std::vector<std::int64_t> sizes_of_fsdp{canonical.fsdp};
  if (!key.of_one_fsdp) sizes_of_fsdp.push_back(largest_fsdp(canonical.model));
  for (const std::int64_t fsdp : sizes_of_fsdp) {
    // The first corner, and those of other layers.
    for (std::int64_t at = 0; at < (canonical.staged() ? 1 + canonical.chunks : 1); ++at) {
      Candidate corner = canonical;
      corner.fsdp = fsdp;
      StageSizes sizes{fsdp, {}};
      std::vector<std::int64_t> layers{layers_};
      if (canonical.staged()) {
        const auto recorded = recorded_layers(layers_, canonical.chunks, at - 1);
        if (!recorded) {
          family.problem = error(ErrorKind::unsupported, "cannot be composed: {} layers in {} chunks", layers_,
                                 canonical.pipe * canonical.chunks);
          return;
        }
        corner.layers = layers = *recorded;
      }
      Workload workload = asked_;
      workload.train.batch = key.rows * corner.microbatches * corner.data * corner.fsdp;
      Result<CandidatePrograms> programs = programs_of(workload, corner, target_, false);
      if (!programs.ok()) {
        family.problem = programs.error();
        return;
      }
      for (std::size_t s = 0; s < stages; ++s) {
        sizes.layers = of_stage(layers, static_cast<std::int64_t>(s), canonical.pipe);
        corners[s].push_back(
            {sizes, *programs->step.stages[s], stage_memory(*programs->stages[s], pipeline_of(corner), sizes.layers)});
      }
    }
  }
  for (const std::vector<StageFamily::Corner>& of_stage : corners) {
    Result<StageFamily> stage = StageFamily::of(of_stage, canonical.staged());
    if (!stage.ok()) {
      family.problem = stage.error();
      return;
    }
    family.stages.push_back(std::move(stage).value());
  }
}

namespace {

PipelineRow step_of(int chunk, bool forward) { return {PipelineRow::Kind::step, {forward, chunk, 0}}; }

}  // namespace

const std::vector<std::vector<int>>& Composer::slots_of(const PipelineStrategy& pipeline, int microbatches) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<int>>& slots =
      slots_[{pipeline.stages, pipeline.chunks_per_stage, static_cast<int>(pipeline.kind), microbatches}];
  if (!slots.empty()) return slots;
  const auto rows = pipeline_rows(pipeline, microbatches);
  for (int s = 0; s < pipeline.stages; ++s) {
    slots.emplace_back();
    for (int c = s; c < pipeline.num_chunks(); c += pipeline.stages)
      slots.back().push_back(most_in_flight(rows[static_cast<std::size_t>(s)], step_of(c, true), step_of(c, false)));
  }
  return slots;
}

// The sum of the microbatches' losses, as the last stage makes it: fused as the target allows.
StretchRecord Composer::loss_sum(std::int64_t microbatches) const {
  if (microbatches == 1) return {};
  const std::lock_guard lock(mutex_);
  const auto [at, first] = loss_sums_.try_emplace(microbatches);
  if (!first) return at->second;
  Graph graph("loss_sum");
  const DType scalar = asked_.train.precision.compute == DType::f64 ? DType::f64 : DType::f32;
  Value sum = graph.input("0", Type(scalar, {}));
  for (std::int64_t m = 1; m < microbatches; ++m) sum = add(sum, graph.input(fmt::format("{}", m), Type(scalar, {})));
  graph.output("loss", sum);
  const std::vector<Pass> passes = function_passes(target_);
  at->second = function_record(run_passes(std::move(graph), passes))[0];
  return at->second;
}

Result<Composed> Composer::compose(const Candidate& candidate, std::int64_t batch) const {
  if (candidate.pipe == 1 && candidate.chunks > 1)
    return error(ErrorKind::unsupported, "cannot be composed: chunks without stages");
  if (candidate.staged() && !one_repeat_)
    return error(ErrorKind::unsupported, "cannot be composed: stages of a model with several stacks of layers");
  const std::int64_t rows = local_rows(batch, candidate);
  Key key = key_of(candidate, rows);
  const Family* found = &family_of(key);
  if (found->problem && !key.of_one_fsdp) {
    key.canonical.fsdp = candidate.fsdp;
    key.of_one_fsdp = true;
    found = &family_of(key);
  }
  const Family& family = *found;
  if (family.problem) return *family.problem;
  try {
    Composed composed;
    const PipelineStrategy pipeline = pipeline_of(candidate);
    const auto microbatches = static_cast<int>(candidate.microbatches);
    std::vector<Axis> axes;
    for (const auto& [axis, size] : workload_of({}, candidate).mesh) axes.push_back({axis, size});
    composed.step = {Mesh::make(std::move(axes)).value(), pipeline, microbatches, {}};
    const std::vector<std::int64_t> layers =
        candidate.staged() ? layers_of_chunks(pipeline, layers_) : std::vector{layers_};
    std::map<std::vector<std::int64_t>, std::shared_ptr<const StageFamily::Stage>> known;
    for (std::int64_t s = 0; s < candidate.pipe; ++s) {
      const bool last = s == candidate.pipe - 1;
      StageSizes sizes{candidate.fsdp, of_stage(layers, s, candidate.pipe)};
      std::vector<std::int64_t> alike = sizes.layers;
      const std::size_t kind = s == 0 ? 0 : last ? family.stages.size() - 1 : 1;
      alike.push_back(static_cast<std::int64_t>(kind));
      std::shared_ptr<const StageFamily::Stage>& stage = known[alike];
      if (stage == nullptr) {
        StageFamily::Stage made = TRY(family.stages[kind].at(sizes));
        if (last && candidate.staged()) {
          const StretchRecord now = loss_sum(candidate.microbatches), then = loss_sum(kRecordedMicrobatches);
          for (StretchRecord& stretch : made.work.after) {
            if (stretch.function != "norm") continue;
            stretch.kernels += now.kernels - then.kernels;
            stretch.moved += now.moved - then.moved;
            stretch.flops += now.flops - then.flops;
          }
        }
        stage = std::make_shared<const StageFamily::Stage>(std::move(made));
      }
      composed.stages.push_back(stage);
      composed.step.stages.emplace_back(stage, &stage->work);
      std::int64_t bytes = stage->memory.parameters + stage->memory.state + stage->memory.gradients;
      for (std::size_t c = 0; c < sizes.layers.size(); ++c) {
        const ChunkMemory& chunk = stage->memory.chunks[c];
        const int slots = candidate.staged() ? slots_of(pipeline, microbatches)[static_cast<std::size_t>(s)][c] : 1;
        bytes += (chunk.of_layer * sizes.layers[c] + chunk.once) * slots;
      }
      composed.arena.emplace_back(bytes);
    }
    return composed;
  } catch (const Failure& f) { return f.error(); }
}

}  // namespace systole
