#pragma once
// The small real Programs that pieces are recorded from. Each is built once.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "predict/plan/candidate.h"
#include "predict/plan/pieces.h"

namespace systole {

// Three stages of a pipeline are recorded, whatever their number: the first, one in the middle, the last.
constexpr std::int64_t kRecordedStages = 3;
constexpr std::int64_t kRecordedMicrobatches = 3;

// The layers of each chunk of a stage, from those of all chunks.
std::vector<std::int64_t> layers_of_stage(const std::vector<std::int64_t>& layers, std::int64_t stage,
                                          std::int64_t stages);

// Names one Program for each of a candidate's stages, with `rows` rows. `more_layers` adds one layer to each chunk of
// the first and last stages, and takes two from each of the middle stage.
struct Corner {
  Candidate candidate;
  std::int64_t rows = 1;
  bool more_layers = false;
  auto operator<=>(const Corner&) const = default;
};
struct CornerStage {
  StagePieces pieces;
  std::vector<std::int64_t> layers;  // of its chunks
};

// Thread-safe.
class CornerPrograms {
 public:
  // `layers`: of the model. `lengths`: of rows, at most one, as make_job. All but numbers are borrowed.
  CornerPrograms(const Workload& asked, const Target& target, std::int64_t layers, int threads,
                 const std::vector<std::int64_t>& lengths)
      : asked_(asked), target_(target), lengths_(lengths), layers_(layers), threads_(threads) {}

  // The recorded stages of each corner, by stage. Builds missing Programs in parallel. Errors: as make_job;
  // unsupported: too few layers.
  Result<std::vector<const std::vector<CornerStage>*>> at(const std::vector<Corner>& corners);
  std::int64_t made() const { return made_; }

 private:
  using Stages = std::vector<CornerStage>;
  struct Entry {
    std::once_flag once;
    std::optional<Result<Stages>> stages;
  };
  Result<Stages> make(const Corner& corner);

  const Workload& asked_;
  const Target& target_;
  const std::vector<std::int64_t>& lengths_;
  const std::int64_t layers_;
  const int threads_;
  std::atomic<std::int64_t> made_ = 0;
  std::mutex mutex_;
  std::map<Corner, std::unique_ptr<Entry>> corners_;
};

}  // namespace systole
