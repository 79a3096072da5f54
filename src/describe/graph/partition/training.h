#pragma once
// A training step as a Program: forward and backward for each microbatch, the guarded update, evaluation and the
// snapshot for a checkpoint. Losses and gradients are sums; the update divides once, by the global count of labels that
// the host hands in.
//
// Values (besides the parameters, by their names):
//   inputs, one slot per microbatch   what the loss graph takes: tokens, labels, … ; "row" i64[]: the microbatch's
//   first row inputs                            "seed", "step" i64[] (where the graph takes them), "rate" f32[],
//   "label_count" f32[] outputs                           "loss" f32[] per microbatch (a sum), "norm" f32[] (of the
//   mean gradient, before clipping),
//                                     "skipped" i32[] (1 when the norm was not finite and nothing changed), and each
//                                     other output of the loss graph, as "loss"
//   state                             "adamw.m/<parameter>", "adamw.v/<parameter>", "sgd.m/<parameter>", "updates"
//   i32[] gradients                         "gradient/<parameter>", in the reduce type staging "snapshot/<parameter or
//   state>", when asked for
// Schedules: "train", "evaluate" (when there is an evaluation graph; its inputs are "evaluate/<name>", its loss
// "evaluate/loss"), "snapshot".

#include <optional>
#include <string>

#include "describe/graph/autodiff.h"
#include "describe/graph/ops/ops.h"
#include "describe/graph/partition/builder.h"
#include "describe/graph/partition/pipeline.h"
#include "describe/graph/partition/training_layouts.h"

namespace systole {

struct UpdateRule {
  enum class Kind { adamw, sgd } kind = Kind::adamw;
  AdamwOptions adamw;
  SgdOptions sgd;
  double clip = 0;  // global norm of the gradient is held to this; 0: not
};

struct Strategy {
  int microbatches = 1;    // of the batch; exact: of a logical shard
  int logical_shards = 0;  // a power of two: exact training over so many (exact.h); 0: not exact
  Precision precision;
  RecomputePolicy recompute;
  UpdateRule optimizer;
  bool snapshot = true;
  bool placed = true;  // else the Program is for counting alone: nothing in it has a place, and it cannot run
  ShardingStrategy sharding;
  PipelineStrategy pipeline;        // of the axis "pipe", whose size gives its stages
  bool overlap = true;              // collectives run beside other work
  std::vector<std::string> probes;  // globs of values to show (probe.h): outputs "probe/<name>" of the last microbatch
};

// `loss`: of one microbatch of all devices, in f32, with the output "loss"; others are scalars, sums over rows too, and
// left out in a pipeline. `evaluation`: the same model without
// dropout, any batch. On a mesh every value is a device's part (ProgramValue::cut), the host hands in
// "coordinate/<axis>" i64[], the device's place on each axis that is asked for, and the function "reduce" comes before
// "update". Errors: Failure(invalid), among them rows that the mesh does not divide.
//
// In a pipeline `device` is who the Program is for: all of a stage have the same. Its parts are in
// training_pipeline.cc; "loss" is the sum over microbatches, in one slot. Errors: Failure(unsupported) with exact
// training or probes.
//
// Exact: `loss` is of one microbatch of one logical shard, `evaluation` of one shard. Each device has all inputs of its
// own shards, one slot a microbatch, and a Program as its number of them asks for: `device` is who it is for. "loss"
// and "evaluate/loss" are sums over all shards, in one slot.
Program training_program(const std::string& name, const Graph& loss, const std::optional<Graph>& evaluation,
                         const Mesh& mesh, const Strategy& strategy, const Target& target,
                         const WorkspaceOf& workspace_of, std::int64_t device = 0);

}  // namespace systole
