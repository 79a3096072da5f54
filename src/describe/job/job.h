#pragma once
// Turns a Workload into the Program of a device: the model, its layouts on the mesh, and the training step. `plan`,
// `run`, `prove` and `backtest` all call this, so the plan and the run have the same Program.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "describe/models/model.h"
#include "describe/partition/training.h"
#include "describe/spec/workload.h"

namespace systole {

// Rows of one length, of a workload with data.buckets. Steps of all lengths cost about alike: B rows of T tokens, or
// B x floor(T / length) shorter ones, B the batch and T the model's context.
struct StepRows {
  std::int64_t length = 0;
  std::int64_t rows = 0;             // of a step
  std::int64_t microbatch_rows = 0;  // as Job::microbatch_rows
  std::string schedule;              // of the Program: "train" for the longest
  std::string prefix;                // of the schedule's inputs: "" for the longest
};

struct Job {
  Workload workload;
  std::unique_ptr<const Model> model;
  std::unique_ptr<const Program> program;
  // Rows of a microbatch: batch / microbatches, rounded up; the last one is padded with empty rows. Exact training: of
  // a logical shard's microbatch.
  std::int64_t microbatch_rows = 0;
  bool padded = false;               // the batch has fewer rows than its microbatches together
  std::int64_t evaluation_rows = 0;  // rows of an evaluation batch; 0: no evaluation
  // With data.buckets: its lengths, ascending; `microbatch_rows` and `padded` are then of the longest. Empty: one
  // length, the model's context.
  std::vector<StepRows> shapes;
};

// The strategy of a workload, without its mesh.
Strategy strategy_of(const Workload& workload);

// Errors: unsupported, at its key: a type of train.precision that no Program supports yet, or that this target does not
// compute in.
Status check_precision(const PrecisionSpec& precision, const Target& target);

// Refuses what has no steps of several lengths yet, with data.buckets, however many lengths the data turn out to have.
// Errors: unsupported, at data.buckets.
Status check_shapes(const Workload& workload);

// `rank`: the device that the Program is for. All devices have the same Program, except in exact training and
// pipelines. `lengths`: of the rows that the data have, with data.buckets; empty: those that the workload names, and its
// model's context for longer texts; of buckets: auto the context alone. Without data.buckets: at most one, of all rows.
// Errors: invalid (naming the size that does not fit), unsupported; those of check_shapes.
Result<Job> make_job(const Workload& workload, const Strategy& strategy, const Target& target,
                     const WorkspaceOf& workspace_of, std::int64_t rank = 0,
                     std::span<const std::int64_t> lengths = {});

}  // namespace systole
