#pragma once
// The parts of a training step as counts that depend on no chip and no cluster: shapes of products and attention,
// bytes, kernels and messages. They are counted from the Programs of all stages; step_parts.h converts them to seconds.
// All numbers are integers: a step that is composed of known pieces must equal the Program's count exactly.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "describe/partition/pipeline.h"
#include "describe/program/program.h"
#include "ground/mesh/collective.h"
#include "predict/perf/kernel_seconds.h"
#include "predict/perf/product_dims.h"

namespace systole {

struct AttentionRecord {
  AttentionShape shape;
  bool backward = false;
};

// What a collective carries.
enum class CarriedKind { tensor, context, expert, parameters, gradients };

struct MessageRecord {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string axes;  // "data,fsdp", as in CollectiveCall
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::direct;
  DType dtype = DType::f32;
  CarriedKind carried = CarriedKind::gradients;
  bool parameter = false;  // a gathered parameter: half the bytes if 16-bit copies are kept
  bool starts = true;      // false: combined with an earlier message
  std::int64_t bytes = 0;  // of a device's operand
  bool operator==(const MessageRecord&) const = default;
};

// A stretch of uninterrupted work, e.g. a layer's forward.
struct StretchRecord {
  std::string function;  // "forward", for every chunk
  std::int64_t times = 1;
  bool in_layers = false;                  // the body of a repeat
  std::vector<ProductDims> products;       // as grouped by product_groups
  std::vector<ProductDims> int8_products;  // by weights in int8, of serving
  std::vector<AttentionRecord> attention;
  std::int64_t quantised = 0;                  // elements that are quantised before products below 16 bits
  std::int64_t moved = 0, kernels = 0;         // other kernels: bytes without the optimizer's; number with them
  std::int64_t converted = 0, converting = 0;  // of those: casts of parameters to 16 bits, saved by 16-bit copies
  std::int64_t summed = 0, summing = 0;        // of those: gradients accumulated right after their product
  std::int64_t updated = 0;                    // bytes of the optimizer
  std::int64_t flops = 0, model_flops = 0;
  std::vector<MessageRecord> messages;
};
using FunctionRecord = std::vector<StretchRecord>;

// Messages to another stage.
struct HandoverRecord {
  std::string axis;
  std::int64_t bytes = 0;
  bool copied = false;  // every rank of a tensor group has all of it
};

struct ChunkRecord {
  FunctionRecord forward, backward;
  std::vector<HandoverRecord> sent, sent_back;  // to the next chunk, to the previous one
};

// One device of a stage.
struct StageRecord {
  std::vector<ChunkRecord> chunks;
  FunctionRecord after;              // once per step: gradient sums, norm, update
  std::vector<HandoverRecord> ties;  // gradients and sums of parameters that stages share
};

struct StepRecord {
  Mesh mesh;
  PipelineStrategy pipeline;
  int microbatches = 1;
  std::vector<std::shared_ptr<const StageRecord>> stages;  // equal stages may share a record
  // Chunk c of the model.
  const ChunkRecord& chunk(std::size_t c) const { return stages[c % stages.size()]->chunks[c / stages.size()]; }
};

FunctionRecord function_record(const Graph& graph);  // named after the graph
// REQUIRES: a training Program in separate functions, not exact, of a stage with the chunks that `pipeline` has.
StageRecord stage_record(const Program& program, const PipelineStrategy& pipeline);

// `stages`: the Program of each pipeline stage, in order. One Program may stand for several stages whose chunks have
// the same number of layers and are neither the first nor the last.
StepRecord step_record(std::span<const Program* const> stages, const PipelineStrategy& pipeline, int microbatches);

// Totals of one device of a stage per step.
struct StageTotals {
  std::int64_t flops = 0, model_flops = 0;  // executed; required by the model
  Bytes sent;                               // by the stage's device at 0 on all other axes; the stage axis is outermost
  bool operator==(const StageTotals&) const = default;
};
StageTotals totals_of(const StepRecord& step, std::size_t stage);
std::int64_t model_flops_of(const StepRecord& step, std::size_t stage);

}  // namespace systole
