#pragma once
// What a published row is predicted to take: its job's Programs, what a step of them is made of, and the prices of a
// stack. The Programs and the parts are made once for all rows that lie alike; pricing parts takes microseconds, which
// is what lets profiles be fitted.

#include <functional>
#include <memory>

#include "predict/backtest/row_job.h"
#include "predict/perf/device_memory.h"
#include "predict/perf/step_time.h"

namespace systole::backtest {

// Of a job, before any stack's prices.
struct RowParts {
  StepParts parts;
  Cluster cluster;
  std::vector<MemoryParts> memory;  // of each Program
};

// A stack that a row ran on, its job and what the job is made of; or why there is none.
struct PreparedRow {
  PublishedRow row;
  const StackProfile* stack = nullptr;  // never null once prepared
  std::optional<RowJob> job;
  std::shared_ptr<const RowParts> made;
  std::string refused;  // why there is no job, in few words; empty where there is one
};

struct PrepareOptions {
  int threads = 2;
  std::function<void(std::size_t done, std::size_t all)> progress = {};  // called from one thread at a time
};

// In the order of the rows. `stacks` outlive what is returned.
std::vector<PreparedRow> prepare(std::vector<PublishedRow> rows, std::span<const StackProfile> stacks,
                                 const Catalog& catalog, const PrepareOptions& options = {});

// The Programs of a job's stages: one for all of a kind (kind_of_stage), of the earliest of them, which holds the most
// microbatches. Index of each stage's among them.
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
// REQUIRES of all: the row has a job.
PredictedRow predict(const PreparedRow& row, const StackProfile& stack);
double predicted_gib(const PreparedRow& row, const StackProfile& stack);

}  // namespace systole::backtest
