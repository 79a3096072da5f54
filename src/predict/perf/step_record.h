#pragma once
// What a training step is made of, in counts that no chip and no cluster changes: products and attention by their
// shapes, bytes, kernels and messages. Counted from the Programs of a step's stages; step_parts.h makes seconds of it.
// All numbers are integers, so that whoever composes a step out of known pieces can be held to the Program's, to the
// bit.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "describe/graph/partition/pipeline.h"
#include "describe/graph/program.h"
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
  std::string axes;  // "data,fsdp", as CollectiveCall's
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::direct;
  DType dtype = DType::f32;
  CarriedKind carried = CarriedKind::gradients;
  bool parameter = false;  // a gathered parameter: half of it where copies in 16 bits are kept
  bool starts = true;      // else it goes along with one that stands before it
  std::int64_t bytes = 0;  // of a device's operand
  bool operator==(const MessageRecord&) const = default;
};

// Work that is done in one go, e.g. a layer's forward.
struct StretchRecord {
  std::string function;  // "forward", of whichever chunk
  std::int64_t times = 1;
  bool in_layers = false;             // the body of a repeat
  std::vector<ProductDims> products;  // as product_groups makes them
  std::vector<AttentionRecord> attention;
  std::int64_t quantised = 0;                  // numbers that are made smaller before products below 16 bits
  std::int64_t moved = 0, kernels = 0;         // bytes of all other kernels, the optimizer's apart; how many there are
  std::int64_t converted = 0, converting = 0;  // of those: parameters to 16 bits, which copies make needless
  std::int64_t summed = 0, summing = 0;        // of those: gradients added to their sums right behind their product
  std::int64_t updated = 0;                    // bytes of the optimizer
  std::int64_t flops = 0, model_flops = 0;
  std::vector<MessageRecord> messages;
};
using FunctionRecord = std::vector<StretchRecord>;

// Messages to another stage.
struct HandoverRecord {
  std::string axis;
  std::int64_t bytes = 0;
  bool copied = false;  // all ranks of a tensor group have the whole of it
};

struct ChunkRecord {
  FunctionRecord forward, backward;
  std::vector<HandoverRecord> sent, sent_back;  // to the chunk after, to the one before
};

// A device of a stage.
struct StageRecord {
  std::vector<ChunkRecord> chunks;
  FunctionRecord after;              // once a step: sums of gradients, norm, update
  std::vector<HandoverRecord> ties;  // gradients and sums of what stages share
};

struct StepRecord {
  Mesh mesh;
  PipelineStrategy pipeline;
  int microbatches = 1;
  std::vector<std::shared_ptr<const StageRecord>> stages;  // equal ones may be one
  // Chunk c of the model.
  const ChunkRecord& chunk(std::size_t c) const { return stages[c % stages.size()]->chunks[c / stages.size()]; }
};

FunctionRecord function_record(const Graph& graph);  // by the graph's name
// REQUIRES: a Program of training that is not exact, in functions; of a stage with so many chunks, of so many in all.
StageRecord stage_record(const Program& program, const PipelineStrategy& pipeline);

// `stages`: the Program of each stage of the pipeline, in order; one Program may stand for several stages whose chunks
// have equally many layers and are neither the first nor the last.
StepRecord step_record(std::span<const Program* const> stages, const PipelineStrategy& pipeline, int microbatches);

// What a device of a stage does in a step.
struct StageTotals {
  std::int64_t flops = 0, model_flops = 0;  // executed, and what the model asks for
  Bytes sent;  // by the device of the stage at the first place on all other axes; stages outermost
  bool operator==(const StageTotals&) const = default;
};
StageTotals totals_of(const StepRecord& step, std::size_t stage);
std::int64_t model_flops_of(const StepRecord& step, std::size_t stage);

}  // namespace systole
