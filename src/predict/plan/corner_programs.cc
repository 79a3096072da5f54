#include "predict/plan/corner_programs.h"

#include <algorithm>

#include "ground/base/parallel.h"

namespace systole {
namespace {

// Layers of the recorded chunks. A repeat of one layer is not a loop, so each chunk has two where the model has enough.
std::optional<std::vector<std::int64_t>> recorded_layers(std::int64_t layers, std::int64_t chunks_per_stage,
                                                         bool more_layers) {
  const std::int64_t chunks = kRecordedStages * chunks_per_stage;
  for (const std::int64_t each : {2, 1}) {
    const std::int64_t rest = layers - each * chunks - 2 * chunks_per_stage;
    if (rest < 0) continue;
    std::vector<std::int64_t> of_chunks(static_cast<std::size_t>(chunks), each);
    for (std::size_t c = 0; c < of_chunks.size(); ++c) {
      const bool middle = c % kRecordedStages == 1;
      if (middle) of_chunks[c] += 2;
      if (more_layers) of_chunks[c] += middle ? -2 : 1;
    }
    of_chunks[1] += rest;
    return of_chunks;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::int64_t> layers_of_stage(const std::vector<std::int64_t>& layers, std::int64_t stage,
                                          std::int64_t stages) {
  std::vector<std::int64_t> own;
  for (std::size_t c = static_cast<std::size_t>(stage); c < layers.size(); c += static_cast<std::size_t>(stages))
    own.push_back(layers[c]);
  return own;
}

Result<CornerPrograms::Stages> CornerPrograms::make(const Corner& corner) {
  Candidate candidate = corner.candidate;
  std::vector<std::int64_t> layers{layers_};
  if (candidate.staged()) {
    const auto recorded = recorded_layers(layers_, candidate.chunks, corner.more_layers);
    if (!recorded) {
      return error(ErrorKind::unsupported, "cannot be composed: {} layers in {} chunks", layers_,
                   candidate.pipe * candidate.chunks);
    }
    candidate.layers = layers = *recorded;
  }
  Workload workload = asked_;
  workload.train.batch = corner.rows * candidate.microbatches * candidate.row_parts();
  const CandidatePrograms programs = TRY(programs_of(workload, candidate, target_, false, lengths_));
  made_ += candidate.pipe;
  Stages stages;
  for (std::size_t s = 0; s < programs.stages.size(); ++s) {
    std::vector<std::int64_t> own = layers_of_stage(layers, static_cast<std::int64_t>(s), candidate.pipe);
    StagePieces pieces = pieces_of(*programs.stages[s], *programs.step.stages[s], pipeline_of(candidate), own);
    stages.push_back({std::move(pieces), std::move(own)});
  }
  return stages;
}

Result<std::vector<const std::vector<CornerStage>*>> CornerPrograms::at(const std::vector<Corner>& corners) {
  std::vector<Entry*> entries;
  {
    const std::lock_guard lock(mutex_);
    for (const Corner& corner : corners) {
      std::unique_ptr<Entry>& entry = corners_[corner];
      if (entry == nullptr) entry = std::make_unique<Entry>();
      entries.push_back(entry.get());
    }
  }
  TRY(for_each_in_parallel(corners.size(), threads_, [&](std::size_t i) -> Status {
    std::call_once(entries[i]->once, [&] { entries[i]->stages = make(corners[i]); });
    return {};
  }));
  std::vector<const Stages*> stages;
  for (const Entry* entry : entries) {
    if (!entry->stages->ok()) return entry->stages->error();
    stages.push_back(&entry->stages->value());
  }
  return stages;
}

}  // namespace systole
