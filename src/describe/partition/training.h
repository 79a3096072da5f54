#pragma once
// A training step as a Program: forward and backward of each microbatch, the guarded update, evaluation, and the
// snapshot for a checkpoint. Losses and gradients are sums; the update divides once, by the global count of labels,
// which is an input.
//
// Values, besides the parameters, which keep their names:
//
//   inputs     inputs of the loss graph (tokens, labels, …), one slot per microbatch
//              "row" i64[]: the microbatch's first row, one slot per microbatch
//              "seed", "step" i64[], where the graph takes them
//              "rate" f32[], "label_count" f32[]
//   outputs    "loss" f32[]: a sum, one slot per microbatch
//              every other output of the loss graph, like "loss"
//              "norm" f32[]: of the mean gradient, before clipping
//              "skipped" i32[]: 1 when the norm was not finite and nothing changed
//   state      "adamw.m/<parameter>", "adamw.v/<parameter>" or "sgd.m/<parameter>"
//              "updates" i32[]
//   gradients  "gradient/<parameter>", in the reduce type
//   staging    "snapshot/<parameter or state>", if Strategy::snapshot
//
// Schedules:
//
//   "train"     one step
//   "train.64"  one step of rows of 64 tokens, for each shape beside that of "train" (StepShape)
//   "evaluate"  if there is an evaluation graph; its inputs are "evaluate/<name>", its loss is "evaluate/loss"
//   "snapshot"  if Strategy::snapshot

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "describe/autodiff/autodiff.h"
#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/partition/pipeline.h"
#include "describe/partition/training_layouts.h"

namespace systole {

struct UpdateRule {
  enum class Kind { adamw, sgd } kind = Kind::adamw;
  AdamwOptions adamw;
  SgdOptions sgd;
  double clip = 0;  // maximum global norm of the gradient; 0: no clipping
};

struct Strategy {
  int microbatches = 1;    // of the batch; exact: of a logical shard
  int logical_shards = 0;  // of exact training, a power of two (exact.h); 0: not exact
  Precision precision;
  RecomputePolicy recompute;
  UpdateRule optimizer;
  bool snapshot = true;
  bool placed = true;  // false: no offsets; the Program is for counting only and cannot run
  ShardingStrategy sharding;
  PipelineStrategy pipeline;        // of the axis "pipe", whose size is the number of stages
  bool overlap = true;              // collectives overlap with other work
  std::vector<std::string> probes;  // globs (probe.h): outputs "probe/<name>" of the last microbatch
};

// A step whose rows are shorter than those of "train": the graph of its microbatch. It has inputs, residuals, "forward"
// and "backward" of its own, named by the length ("64/tokens", "forward.64"); everything else is shared with "train".
// Only one schedule runs at a time, so the arena is that of the largest shape.
struct StepShape {
  std::int64_t length = 0;
  Graph loss;
};
std::string train_schedule(std::int64_t length);  // "train.64"
bool is_train_schedule(std::string_view name);    // "train" or "train.64"
std::string shape_prefix(std::int64_t length);    // "64/", of the names of its inputs

// `loss`: the graph of one microbatch over all devices, in f32. Its outputs, "loss" among them, are scalars: sums over
// rows. `evaluation`: the same model without dropout, for any batch. `device`: the device that the Program is for.
//
// On a mesh every value is a device's shard (ProgramValue::cut). "coordinate/<axis>" i64[], the device's place on an
// axis, is an input for each axis that a function asks for. The function "reduce" precedes "update".
// Errors: Failure(invalid), for instance when the mesh does not divide the rows.
//
// In a pipeline all devices of a stage have the same Program (training_pipeline.h). "loss" is the sum over
// microbatches, in one slot; other outputs of the loss graph are dropped. Errors: Failure(unsupported) with exact
// training or probes.
//
// In exact training (exact.h) `loss` is the graph of one microbatch of one logical shard, `evaluation` that of one
// shard. The Program depends on the shards that the device owns; their inputs are inputs of the device, one slot per
// microbatch. "loss" and "evaluate/loss" are sums over all shards, in one slot.
//
// `shapes`: other lengths of rows. REQUIRES: none with probes.
Program training_program(const std::string& name, const Graph& loss, const std::optional<Graph>& evaluation,
                         const Mesh& mesh, const Strategy& strategy, const Target& target,
                         const WorkspaceOf& workspace_of, std::int64_t device = 0,
                         std::span<const StepShape> shapes = {});

}  // namespace systole
