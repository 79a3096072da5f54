#pragma once
// What a training step is made of on a cluster: the Programs' products, attention, bytes, kernels and messages as
// seconds of the chip at its best, before any stack's shares. Taken from the Programs once; step_time.h then prices
// them for a stack in microseconds.

#include <span>
#include <vector>

#include "predict/perf/cluster.h"
#include "predict/perf/step_record.h"

namespace systole {

// What a stack does that no Program says.
struct KernelChoice {
  ProductType products = ProductType::bf16;  // of layers; the head is done in bf16 where they are narrower
  enum class Attention { best, flash_2, unfused } attention = Attention::best;
  double captured = 0;            // share of kernels that are launched in graphs, without the host
  bool expert_overlap = false;    // all_to_all of experts runs beside another microbatch
  bool sums_in_products = false;  // products add gradients to their sums themselves
  bool updates_in_parts = false;  // the step's end goes a bucket at a time, in no memory besides
  bool whole_again = false;       // a block that is done again is done to its end
  bool splits_dispatch = false;   // ranks of a tensor group each send a part of what goes to experts, and gather it
  std::int64_t sent_once = 0;     // of so many experts that a token has, those on one other machine get one message; 0:
                                  // each gets its own
  bool half_copies = true;        // parameters in bf16 are kept beside those in f32, read and sent in their place
};

// Messages of a kind, in one stretch of work.
struct MessageParts {
  double seconds = 0;      // within the domain, all of it
  double far_seconds = 0;  // of bytes that leave it, at the network's whole bandwidth
  double far_hops = 0;     // steps between ranks that they take
};

// Work that is done in one go, e.g. a layer's forward: seconds of a device.
struct WorkParts {
  double products = 0;       // of layers
  double grouped = 0;        // of experts, each by its own weights
  double head_products = 0;  // outside of layers
  double attention = 0;      // fused
  double moved = 0;          // bytes of the ops between
  double update = 0;         // bytes of the optimizer
  double kernels = 0;        // launched
  double layers = 0;         // 1: it is one
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
  std::vector<FunctionParts> after;  // by stage: sums of gradients, norm, update
  double tensor_ranks = 1;
  double machines = 1;      // that wait for each other
  bool far_stages = false;  // on several machines
  KernelChoice kernels;
  double model_flops = 0;  // of a step, of all devices
};

// What a chip does of a stretch: all but its bytes and messages.
WorkParts computed(const StretchRecord& stretch, const Accelerator& chip, const KernelChoice& kernels);
// The bytes that its kernels move.
void add_moved(const StretchRecord& stretch, const Accelerator& chip, const KernelChoice& kernels, WorkParts& parts);
// Messages of one kind over the same axes: `bytes` of a device's operands, all of them; `starts` of them start.
struct MessageGroup {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CarriedKind carried = CarriedKind::gradients;
  double bytes = 0, starts = 0;
  std::int64_t sent_once = 0;  // KernelChoice's
  double senders = 1;          // that have the same, and each send a part of it
};
void add_messages(const MessageGroup& group, const GroupLinks& links, const Cluster& cluster, WorkParts& parts);
// Bytes that a device gives to one of another stage.
void add_handover(double bytes, const GroupLinks& links, const Cluster& cluster, MessageParts& parts);

// Errors: Failure as links_of.
StepParts step_parts(const StepRecord& step, const Cluster& cluster, const KernelChoice& kernels);
StepParts step_parts(std::span<const Program* const> stages, const PipelineStrategy& pipeline, int microbatches,
                     const Cluster& cluster, const KernelChoice& kernels);

}  // namespace systole
