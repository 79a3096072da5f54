#pragma once
// The parts of a training step on a cluster: products, attention, memory traffic, kernels and messages of its Programs,
// in seconds of the chip at its best, before a stack's fractions. They are computed once; step_time.h then prices them
// for a stack in microseconds.

#include <span>
#include <vector>

#include "predict/perf/device_cluster.h"
#include "predict/perf/step_record.h"

namespace systole {

// Choices of a stack that a Program does not state.
struct KernelChoice {
  ProductType products = ProductType::bf16;  // in layers; the head uses bf16 if this is narrower
  enum class Attention { best, flash_2, unfused } attention = Attention::best;
  double captured = 0;            // fraction of kernels launched in graphs, without the host
  bool expert_overlap = false;    // all_to_all of experts overlaps another microbatch
  bool sums_in_products = false;  // products accumulate gradients
  bool updates_in_parts = false;  // the update goes bucket by bucket, without extra memory
  bool whole_again = false;       // recomputation runs a block to its end
  bool splits_dispatch = false;   // each rank of a tensor group sends a part of the tokens to experts, then gathers
  std::int64_t sent_once = 0;     // experts of a token, if it is sent once to each machine; 0: once to each expert
  bool half_copies = true;        // bf16 copies of f32 parameters are kept; they are read and sent instead
  bool narrow_products = false;   // products of few rows have kernels of their own, as in serving
};

// Messages of one kind in a stretch of work.
struct MessageParts {
  double seconds = 0;      // of messages within the domain, latency included
  double far_seconds = 0;  // of bytes that leave the domain, at the network's full bandwidth
  double far_hops = 0;     // steps between ranks that these take
};

// A stretch of uninterrupted work, e.g. a layer's forward: seconds of a device.
struct WorkParts {
  double products = 0;       // in layers
  double grouped = 0;        // of experts, each with its own weights
  double head_products = 0;  // outside layers
  double attention = 0;      // fused
  double moved = 0;          // memory traffic of memory-bound ops
  double update = 0;         // memory traffic of the optimizer
  double kernels = 0;        // number of launches
  double layers = 0;         // 1 if it is a layer, else 0
  MessageParts tensor, context, expert, parameters, gradients;
};

struct StretchParts {
  WorkParts once;
  double times = 1;
};
using FunctionParts = std::vector<StretchParts>;

struct ChunkParts {
  FunctionParts forward, backward;
  MessageParts handed_on;  // to the next chunk, and as much back
};

struct StepParts {
  PipelineStrategy pipeline;
  int microbatches = 1;
  std::vector<ChunkParts> chunks;    // of the model
  std::vector<FunctionParts> after;  // by stage: gradient sums, norm, update
  double tensor_ranks = 1;
  double machines = 1;      // that synchronise once per step
  bool far_stages = false;  // stages span several machines
  KernelChoice kernels;
  double model_flops = 0;  // per step, of all devices
};

// The parts of a stretch, without those of add_moved and add_messages.
WorkParts computed(const StretchRecord& stretch, const Accelerator& chip, const KernelChoice& kernels);
// Adds the memory traffic of its kernels.
void add_moved(const StretchRecord& stretch, const Accelerator& chip, const KernelChoice& kernels, WorkParts& parts);
// Messages of one kind over the same axes. `bytes`: of a device's operands, in total. `starts`: how many start; the
// others are combined with these.
struct MessageGroup {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CarriedKind carried = CarriedKind::gradients;
  double bytes = 0, starts = 0;
  std::int64_t sent_once = 0;  // as in KernelChoice
  double senders = 1;          // ranks with the same data, which each send a part
};
void add_messages(const MessageGroup& group, const GroupLinks& links, const Cluster& cluster, WorkParts& parts);
// Adds `bytes` that a device sends to a device of another stage.
void add_handover(double bytes, const GroupLinks& links, const Cluster& cluster, MessageParts& parts);

// Errors: Failure as links_of.
StepParts step_parts(const StepRecord& step, const Cluster& cluster, const KernelChoice& kernels);
StepParts step_parts(std::span<const Program* const> stages, const PipelineStrategy& pipeline, int microbatches,
                     const Cluster& cluster, const KernelChoice& kernels);

}  // namespace systole
