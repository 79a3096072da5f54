#include "predict/plan/composed_cost.h"

#include <algorithm>
#include <cmath>

#include "describe/ir/rewrite.h"
#include "describe/models/list.h"
#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/partition/chunks.h"
#include "predict/perf/device_memory.h"
#include "predict/plan/piece_family.h"

namespace systole {
namespace {

constexpr std::int64_t kLeastFsdp = 2, kMostFsdp = 4096;
constexpr std::size_t kMostCounted = 4096;  // of tens of KB each

// The recorded stage that stands for chunk c of a stage.
std::size_t place_of(std::int64_t stage, std::size_t c, std::int64_t stages, std::int64_t chunks) {
  if (stage == 0 && c == 0) return 0;
  const bool last = stage == stages - 1 && static_cast<std::int64_t>(c) == chunks - 1;
  return last ? kRecordedStages - 1 : 1;
}

// Removes an axis that was only recorded for the family: it adds nothing but its messages.
void leave_out(std::string_view axis, FunctionRecord& function) {
  std::erase_if(function, [axis](StretchRecord& stretch) {
    const bool some =
        std::erase_if(stretch.messages, [axis](const MessageRecord& message) { return message.axes == axis; }) > 0;
    return some && stretch.messages.empty() && stretch.kernels == 0;  // it had no other work
  });
}

}  // namespace

Bytes ComposedCost::state_bytes(std::size_t stage) const {
  return Bytes(stages[stage]->parameters + stages[stage]->state);
}

Bytes ComposedCost::memory_at_least(const KernelChoice& kernels, const StackProfile& stack) const {
  Bytes most;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    MemoryParts parts;
    parts.arena = arena[s];
    parts.copies = Bytes(kernels.half_copies ? stages[s]->copies : 0);
    parts.logits = stages[s]->logits;
    parts.activations = activations[s];
    most = std::max(most, device_memory(parts, stack).total());
  }
  return most;
}

Composer::Composer(Workload asked, Target target, int threads, std::vector<PlannedShape> shapes)
    : Composer(std::move(asked), std::move(target), threads, Alone()) {
  if (shapes.empty()) return;
  shapes_ = std::move(shapes);
  steps_.clear();
  const std::vector<double> shares = step_shares(shapes_);
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const std::int64_t length = shapes_[s].length;
    of_shapes_.push_back(
        std::unique_ptr<const Composer>(new Composer(with_length(asked_, length), target_, threads, Alone{length})));
    steps_.push_back({of_shapes_.back().get(), shares[s]});
  }
}

Composer::Composer(Workload asked, Target target, int threads, Alone alone)
    : asked_(std::move(asked)),
      target_(std::move(target)),
      length_(alone.length > 0 ? 1 : 0, alone.length),
      steps_{{this, 1}},
      model_(make_model(asked_.model)),
      layers_(num_layers(model_->loss({1}, true))),
      corners_(asked_, target_, layers_, threads, length_) {
  const Graph loss = model_->loss({1}, true);
  one_repeat_ = std::ranges::count_if(loss.nodes(), [](const GraphNode& node) { return is(node, "repeat"); }) == 1;
}

Composer::~Composer() = default;

bool Composer::divides(std::int64_t fsdp, const Candidate& candidate) const {
  const std::lock_guard lock(mutex_);
  const auto [at, first] = divides_.try_emplace({fsdp, candidate.expert, candidate.model}, true);
  if (!first) return at->second;
  ShardingStrategy sharding = strategy_of(asked_).sharding;
  sharding.stored = ShardingStrategy::Stored::parameters;
  const Mesh mesh = without_single_axes(
      Mesh::make({{"fsdp", fsdp}, {"expert", candidate.expert}, {"model", candidate.model}}).value());
  const TrainingLayouts layouts(mesh, sharding);
  for (const Parameter& p : model_->parameters())
    at->second = at->second && systole::divides(p.type, layouts.parameter(p), mesh);
  return at->second;
}

std::int64_t Composer::largest_fsdp(const Candidate& candidate) const {
  const std::array of{candidate.expert, candidate.model};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = largest_fsdp_.find(of); known != largest_fsdp_.end()) return known->second;
  }
  std::int64_t most = 1;
  while (most < kMostFsdp && divides(most * 2, candidate)) most *= 2;
  const std::lock_guard lock(mutex_);
  return largest_fsdp_[of] = most;
}

Composer::Key Composer::key_of(const Candidate& candidate) const {
  Key key{candidate, true};
  Candidate& family = key.canonical;
  family.layers.clear();
  family.schedule = PipelineSpec::Schedule::one_f_one_b;
  family.chunks = 1;
  // Where rows are sharded along data, random numbers depend on a row's place in the batch, and so do the masks of an
  // encoder and its decoder.
  const bool by_place = candidate.row_parts() == 1 || asked_.model.dropout() > 0 || !one_repeat_;
  family.data = by_place ? std::min<std::int64_t>(candidate.data, 2) : 2;
  if (candidate.staged()) family.pipe = kRecordedStages;
  family.microbatches = candidate.staged() ? kRecordedMicrobatches : std::min<std::int64_t>(candidate.microbatches, 2);
  if (candidate.fsdp == 1) {
    family.stored = ZeroStage::nothing;
  } else if (candidate.stored == ZeroStage::nothing) {
    family.fsdp = kLeastFsdp;
  } else if (divides(candidate.fsdp, candidate) && largest_fsdp(candidate) > kLeastFsdp &&
             candidate.fsdp <= largest_fsdp(candidate)) {
    family.fsdp = kLeastFsdp;
    key.of_one_fsdp = false;
  }
  return key;
}

// No chunk touches the optimizer state, so chunks are equal for any sharding of it, and without fsdp but for its
// messages.
Composer::Key Composer::chunk_key(const Candidate& candidate) const {
  Key key = key_of(candidate);
  const bool of_state = candidate.fsdp == 1 || candidate.stored <= ZeroStage::state;
  if (!of_state || key.canonical.data == 1 || asked_.model.dropout() > 0 || !one_repeat_) return key;
  key.canonical.fsdp = kLeastFsdp;
  key.canonical.stored = ZeroStage::state;
  key.of_one_fsdp = true;
  return key;
}

// The work after chunks is recorded with the recomputation of the first request: those Programs usually exist already,
// for the chunks.
template <typename Piece>
PieceFamily<Piece>& Composer::family_of(Families<Piece>& families, const Key& key) const {
  const std::int64_t other = key.of_one_fsdp ? 0 : largest_fsdp(key.canonical);
  Key shared = key;
  if (std::is_same_v<Piece, AfterPiece>) shared.canonical.recompute = RecomputeSpec::Kind::none;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<PieceFamily<Piece>>& at = families[shared];
  if (at == nullptr) at = std::make_unique<PieceFamily<Piece>>(corners_, key.canonical, other);
  return *at;
}

template <typename Piece>
Result<Piece> Composer::piece_at(Families<Piece>& families, Key key, std::size_t place, const PieceSizes& sizes) const {
  Result<Piece> piece = family_of(families, key).at(place, sizes);
  if (piece.ok() || key.of_one_fsdp) return piece;
  key.canonical.fsdp = sizes.fsdp;
  key.of_one_fsdp = true;
  return family_of(families, key).at(place, sizes);
}

std::int64_t Composer::parts_at_least(const Candidate& candidate) const {
  Candidate alone;
  alone.expert = candidate.expert;
  alone.model = candidate.model;
  return largest_fsdp(alone);
}

Result<ChunkPiece> Composer::layers_at_least(const Candidate& candidate, std::int64_t rows) const {
  Candidate alone;
  alone.context = candidate.context;
  alone.expert = candidate.expert;
  alone.model = candidate.model;
  alone.recompute = candidate.recompute;
  alone.microbatches = std::min<std::int64_t>(candidate.microbatches, 2);
  alone.fsdp = parts_at_least(candidate);
  const Key key{alone, true};
  const PieceSizes sizes{alone.fsdp, rows, layers_};
  // On a mesh few numbers of rows are divisible, and the sharding of ops differs between them.
  const bool cut = alone.context * alone.expert * alone.model > 1;
  return cut ? family_of(chunks_, key).at_rows(0, sizes) : piece_at(chunks_, key, 0, sizes);
}

Result<AfterPiece> Composer::after_chunks(const Candidate& candidate, std::size_t place,
                                          const std::vector<AfterPiece>& alone) const {
  Key key = key_of(candidate);
  key.canonical.chunks = candidate.chunks;
  if (key.of_one_fsdp) key.canonical.fsdp = candidate.fsdp;
  key.canonical.recompute = RecomputeSpec::Kind::none;  // the smallest Programs; their chunks are not used
  const Corner corner{key.canonical, 1, false};
  const auto found = [&]() -> const Result<AfterChunks>* {
    const std::lock_guard lock(mutex_);
    const auto at = after_chunks_.find({key, place});
    return at == after_chunks_.end() ? nullptr : &at->second;
  };
  const Result<AfterChunks>* known = found();
  if (known == nullptr) {
    const auto record = [&]() -> Result<AfterChunks> {
      const CornerStage& stage = (*TRY(corners_.at({corner}))[0])[place];
      std::vector<AfterPiece> own;
      for (std::size_t c = 0; c < stage.layers.size(); ++c) {
        const std::size_t as = place_of(static_cast<std::int64_t>(place), c, kRecordedStages, candidate.chunks);
        own.push_back(TRY(piece_at(afters_, key_of(candidate), as, {key.canonical.fsdp, 1, stage.layers[c]})));
      }
      return AfterChunks::of(stage.pieces.after, own);
    };
    Result<AfterChunks> made = record();
    const std::lock_guard lock(mutex_);
    known = &after_chunks_.emplace(std::pair(key, place), std::move(made)).first->second;
  }
  if (!known->ok()) return known->error();
  return known->value().at(alone);
}

const std::vector<std::vector<int>>& Composer::in_flight(const PipelineStrategy& pipeline,
                                                         std::int64_t microbatches) const {
  // Once all stages are busy, more microbatches do not raise the number in flight.
  const std::int64_t stages = pipeline.stages, few = 4 * stages + microbatches % stages;
  const auto count =
      static_cast<int>(pipeline.kind == PipelineStrategy::Kind::gpipe ? microbatches : std::min(microbatches, few));
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<int>>& slots =
      in_flight_[{pipeline.stages, pipeline.chunks_per_stage, static_cast<int>(pipeline.kind), count}];
  if (!slots.empty()) return slots;
  const auto rows = pipeline_rows(pipeline, count);
  for (int s = 0; s < pipeline.stages; ++s) {
    slots.emplace_back();
    for (int c = s; c < pipeline.num_chunks(); c += pipeline.stages)
      slots.back().push_back(most_in_flight(rows[static_cast<std::size_t>(s)], c));
  }
  return slots;
}

// The sum of the microbatches' losses, which the last stage computes, fused as the target allows.
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

void Composer::set_loss_sum(std::int64_t microbatches, StageRecord& last) const {
  const StretchRecord now = loss_sum(microbatches), then = loss_sum(kRecordedMicrobatches);
  for (StretchRecord& stretch : last.after) {
    if (stretch.function != "norm") continue;
    stretch.kernels += now.kernels - then.kernels;
    stretch.moved += now.moved - then.moved;
    stretch.flops += now.flops - then.flops;
  }
}

Result<ComposedCost::Stage> Composer::stage_of(const Candidate& candidate, std::int64_t stage, std::int64_t rows,
                                               const std::vector<std::int64_t>& layers) const {
  ComposedCost::Stage made;
  std::vector<AfterPiece> afters;
  for (std::size_t c = 0; c < layers.size(); ++c) {
    const std::size_t place =
        candidate.staged() ? place_of(stage, c, candidate.pipe, candidate.chunks) : std::size_t{0};
    const PieceSizes sizes{candidate.fsdp, rows, layers[c]};
    ChunkPiece chunk = TRY(piece_at(chunks_, chunk_key(candidate), place, sizes));
    afters.push_back(TRY(piece_at(afters_, key_of(candidate), place, sizes)));
    made.kept.push_back(chunk.kept_by_layer * layers[c] + chunk.kept);
    made.logits = chunk.logits;
    made.live = chunk.live.empty() ? 0 : std::ranges::max(chunk.live);
    made.work.chunks.push_back(std::move(chunk.work));
  }
  const std::size_t place = stage == 0 ? 0 : stage == candidate.pipe - 1 ? kRecordedStages - 1 : 1;
  AfterPiece after = layers.size() == 1 ? std::move(afters[0]) : TRY(after_chunks(candidate, place, afters));
  for (const char* axis : {"data", "fsdp"}) {
    if ((axis == std::string_view("data") ? candidate.data : candidate.fsdp) > 1) continue;
    for (ChunkRecord& chunk : made.work.chunks) {
      leave_out(axis, chunk.forward);
      leave_out(axis, chunk.backward);
    }
    leave_out(axis, after.work);
  }
  made.parameters = after.parameters;
  made.state = after.state;
  made.gradients = after.gradients;
  made.reduced = after.reduced;
  made.copies = after.copies;
  made.work.after = std::move(after.work);
  made.work.ties = std::move(after.ties);
  if (candidate.staged() && stage == candidate.pipe - 1) set_loss_sum(candidate.microbatches, made.work);
  return made;
}

Result<ComposedCost> Composer::compose(const Candidate& candidate, std::int64_t batch) const {
  if (candidate.pipe == 1 && candidate.chunks > 1)
    return error(ErrorKind::unsupported, "cannot be composed: chunks without stages");
  if (candidate.staged() && !one_repeat_)
    return error(ErrorKind::unsupported, "cannot be composed: stages of a model with several stacks of layers");
  try {
    const std::int64_t rows = local_rows(batch, candidate);
    ComposedCost composed;
    const PipelineStrategy pipeline = pipeline_of(candidate);
    const auto microbatches = static_cast<int>(candidate.microbatches);
    composed.step = {Mesh::of(mesh_of(candidate)).value(), pipeline, microbatches, {}};
    const std::vector<std::int64_t> layers =
        candidate.staged() ? layers_of_chunks(pipeline, layers_) : std::vector{layers_};
    std::map<std::vector<std::int64_t>, std::shared_ptr<const ComposedCost::Stage>> known;
    for (std::int64_t s = 0; s < candidate.pipe; ++s) {
      const std::vector<std::int64_t> own = layers_of_stage(layers, s, candidate.pipe);
      std::vector<std::int64_t> alike = own;
      alike.push_back(s == 0 ? 0 : s == candidate.pipe - 1 ? 2 : 1);
      std::shared_ptr<const ComposedCost::Stage>& stage = known[alike];
      if (stage == nullptr) stage = std::make_shared<const ComposedCost::Stage>(TRY(stage_of(candidate, s, rows, own)));
      composed.stages.push_back(stage);
      composed.step.stages.emplace_back(stage, &stage->work);
      // The saved activations of every chunk are live until the last backward of the last chunk.
      std::int64_t activations = stage->live;
      for (std::size_t c = 0; c < own.size(); ++c)
        activations += stage->kept[c] *
                       (candidate.staged() ? in_flight(pipeline, microbatches)[static_cast<std::size_t>(s)][c] : 1);
      composed.arena.emplace_back(stage->parameters + stage->state + stage->gradients + activations);
      // Sums of gradients, made later, may reuse their memory.
      composed.activations.emplace_back(std::max<std::int64_t>(0, activations - stage->reduced));
    }
    return composed;
  } catch (const Failure& f) { return f.error(); }
}

Result<std::shared_ptr<const StepRecord>> Composer::counted(const Candidate& candidate, std::int64_t batch) const {
  const std::pair key(candidate, batch);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = counted_.find(key); known != counted_.end()) return known->second;
  }
  const auto count = [&]() -> Result<std::shared_ptr<const StepRecord>> {
    Workload asked = asked_;
    asked.train.batch = batch;
    CandidatePrograms programs = TRY(programs_of(asked, candidate, target_, false, length_));
    return std::make_shared<const StepRecord>(std::move(programs.step));
  };
  Result<std::shared_ptr<const StepRecord>> made = count();
  const std::lock_guard lock(mutex_);
  if (counted_.size() >= kMostCounted) counted_.clear();
  return counted_.insert_or_assign(key, std::move(made)).first->second;
}

}  // namespace systole
