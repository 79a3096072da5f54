#pragma once
// Predicts time and memory of a published row: from its job's Programs, the parts of their step, and a stack's prices.
// Programs and parts are built once for all rows with the same layout. Pricing parts takes microseconds, so profiles
// can be fitted.

#include <functional>
#include <memory>

#include "predict/backtest/row_job.h"
#include "predict/perf/device_memory.h"
#include "predict/perf/step_time.h"

namespace systole::backtest {

// The parts of a job's step, before a stack's prices.
struct RowParts {
  StepParts parts;
  Cluster cluster;
  std::vector<MemoryParts> memory;  // by Program
};

// A row with its stack, its job and the job's parts, or the reason why there is no job.
struct PreparedRow {
  PublishedRow row;
  const StackProfile* stack = nullptr;  // not null after prepare()
  std::optional<RowJob> job;
  std::shared_ptr<const RowParts> made;
  std::string refused;  // why there is no job, in few words; empty if there is one
};

struct PrepareOptions {
  int threads = 2;
  std::function<void(std::size_t done, std::size_t all)> progress = {};  // called from one thread at a time
};

// In the order of the rows. `stacks` must outlive the result.
std::vector<PreparedRow> prepare(std::vector<PublishedRow> rows, std::span<const StackProfile> stacks,
                                 const Catalog& catalog, const PrepareOptions& options = {});

// The Programs of a job's stages: one for all stages of a kind (kind_of_stage), that of the earliest, which holds the
// most microbatches. `of_stage`: index of each stage's Program.
struct StagePrograms {
  std::vector<std::unique_ptr<const Program>> programs;
  std::vector<std::size_t> of_stage;
};
// Errors: as make_job.
Result<StagePrograms> stage_programs(const RowJob& job);

struct PredictedRow {
  StepTime time;
  double mfu = 0;         // model FLOPs over the dense peak in bf16
  double memory_gib = 0;  // of the fullest device
};
// REQUIRES, for both: the row has a job.
PredictedRow predict(const PreparedRow& row, const StackProfile& stack);
double predicted_gib(const PreparedRow& row, const StackProfile& stack);

}  // namespace systole::backtest
