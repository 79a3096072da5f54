#include "predict/perf/step_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "predict/perf/kernel_seconds.h"

namespace systole {
namespace {

// Bytes to quantise an element of an 8-bit product's operand: read in 16 bits, written in 8.
constexpr double kQuantised = 3;
// Factor on the bytes that an optimizer's ops read and write: lists of many tensors, and the norms that read them
// before.
constexpr double kUpdated = 1.3;
// Kernels of a product below 16 bits: each operand is quantised first.
constexpr double kSmallKernels = 3;
// Bytes per element of a block's end: dropout, addition and result, in 16 bits.
constexpr std::int64_t kEnd = 6;

double moving(const Accelerator& chip, std::int64_t bytes) {
  return static_cast<double>(bytes) / (chip.memory.count() * chip.memory_reached);
}

MessageParts& parts_of(CarriedKind carried, WorkParts& parts) {
  switch (carried) {
    case CarriedKind::tensor: return parts.tensor;
    case CarriedKind::context: return parts.context;
    case CarriedKind::expert: return parts.expert;
    case CarriedKind::parameters: return parts.parameters;
    case CarriedKind::gradients: break;
  }
  return parts.gradients;
}

// Traffic to experts on other machines if a token is sent once to each machine, as a fraction of sending it once to
// each expert: the expected number of machines that hold a token's k experts, over k (dispatch of DeepEP and HybridEP).
double sent_once_share(std::int64_t experts, double machines) {
  if (experts < 1 || machines <= 1) return 1;
  const double k = static_cast<double>(experts);
  return (1 - std::pow(1 - 1 / machines, k)) * machines / k;
}

// Converts the stretches of a mesh from records to parts.
class Stretches {
 public:
  Stretches(const Mesh& mesh, const Cluster& cluster, const KernelChoice& kernels)
      : mesh_(mesh),
        cluster_(cluster),
        kernels_(kernels),
        tensor_ranks_(static_cast<double>(mesh.size_along("model"))) {}

  double tensor_ranks() const { return tensor_ranks_; }

  FunctionParts of(const FunctionRecord& function) {
    FunctionParts parts;
    for (const StretchRecord& stretch : function) parts.push_back({once(stretch), static_cast<double>(stretch.times)});
    return parts;
  }

  MessageParts handed_on(const std::vector<HandoverRecord>& handovers) {
    MessageParts parts;
    for (const HandoverRecord& handover : handovers) {
      const GroupLinks& links = links_over(handover.axis);
      // If all ranks of a tensor group have the value, each sends a part, and the receivers gather it over faster links
      // (Narayanan et al., arXiv:2104.04473, section 4.1).
      const double bytes = static_cast<double>(handover.bytes) / (handover.copied ? tensor_ranks_ : 1);
      add_handover(bytes, links, cluster_, parts);
    }
    return parts;
  }

 private:
  WorkParts once(const StretchRecord& stretch) {
    WorkParts parts = computed(stretch, cluster_.chip, kernels_);
    add_moved(stretch, cluster_.chip, kernels_, parts);
    for (const MessageRecord& message : stretch.messages) {
      const double halved = message.parameter && kernels_.half_copies ? 0.5 : 1;
      add_messages({message.kind, message.carried, halved * static_cast<double>(message.bytes),
                    message.starts ? 1.0 : 0, kernels_.sent_once, kernels_.splits_dispatch ? tensor_ranks_ : 1},
                   links_over(message.axes), cluster_, parts);
    }
    return parts;
  }

  const GroupLinks& links_over(const std::string& axes) {
    const auto [at, first] = links_.try_emplace(axes);
    if (first) at->second = links_of(cluster_, mesh_, axes);
    return at->second;
  }

  const Mesh& mesh_;
  const Cluster& cluster_;
  const KernelChoice& kernels_;
  const double tensor_ranks_;
  std::map<std::string, GroupLinks> links_;
};

// A Program recomputes only what gradients need of a block: all but its last product and the sum or send of that.
// PyTorch's checkpointing runs the block to its end; this adds the rest.
FunctionRecord again_to_the_end(const ChunkRecord& chunk) {
  FunctionRecord backward = chunk.backward;
  std::vector<const StretchRecord*> blocks;  // of forward, last first
  for (const StretchRecord& stretch : chunk.forward)
    if (stretch.in_layers) blocks.insert(blocks.begin(), &stretch);
  std::size_t next = 0;
  for (StretchRecord& stretch : backward) {
    if (!stretch.in_layers || next == blocks.size()) continue;
    const StretchRecord& block = *blocks[next++];
    if (block.products.empty()) continue;
    const ProductDims& last = block.products.back();
    stretch.products.push_back(last);
    stretch.moved += kEnd * last.batch * last.rows * last.columns;
    ++stretch.kernels;
    const auto sent = std::ranges::find_if(block.messages.rbegin(), block.messages.rend(), [](const MessageRecord& m) {
      return m.carried == CarriedKind::expert ||
             (m.carried == CarriedKind::tensor && m.kind != CollectiveKind::all_gather);
    });
    if (sent != block.messages.rend()) stretch.messages.push_back(*sent);
  }
  return backward;
}

}  // namespace

WorkParts computed(const StretchRecord& stretch, const Accelerator& chip, const KernelChoice& kernels) {
  WorkParts parts;
  parts.layers = stretch.in_layers ? 1 : 0;
  const ProductType wide = in_32_bits(kernels.products) ? kernels.products : ProductType::bf16;
  const bool small = stretch.in_layers && kernels.products != wide;
  const auto seconds_of = [&](const ProductDims& dims, ProductType type) {
    return kernels.narrow_products ? narrow_product_seconds(chip, dims, type) : product_seconds(chip, dims, type);
  };
  for (const ProductDims& dims : stretch.products) {
    const double seconds = seconds_of(dims, stretch.in_layers ? kernels.products : wide);
    (!stretch.in_layers ? parts.head_products : dims.batch > 1 ? parts.grouped : parts.products) += seconds;
    parts.kernels += static_cast<double>(dims.batch) * (small ? kSmallKernels : 1);
  }
  for (const ProductDims& dims : stretch.int8_products) {
    (stretch.in_layers ? parts.products : parts.head_products) += seconds_of(dims, ProductType::int8);
    ++parts.kernels;
  }
  for (const AttentionRecord& attention : stretch.attention) {
    if (kernels.attention == KernelChoice::Attention::unfused) {
      const UnfusedAttention unfused = unfused_attention_seconds(chip, attention.shape, attention.backward, wide);
      parts.products += unfused.products;
      parts.moved += unfused.moved;
      parts.kernels += unfused.kernels;
      continue;
    }
    const bool older = kernels.attention == KernelChoice::Attention::flash_2 && chip.attention_2;
    parts.attention +=
        fused_attention_seconds(chip, older ? *chip.attention_2 : chip.attention, attention.shape, attention.backward);
    parts.kernels += attention.backward ? 3 : 1;
  }
  if (small) parts.moved += moving(chip, stretch.quantised) * kQuantised;
  parts.kernels += static_cast<double>(stretch.kernels - (kernels.half_copies ? stretch.converting : 0) -
                                       (kernels.sums_in_products ? stretch.summing : 0));
  return parts;
}

void add_moved(const StretchRecord& stretch, const Accelerator& chip, const KernelChoice& kernels, WorkParts& parts) {
  parts.moved += moving(chip, stretch.moved - (kernels.half_copies ? stretch.converted : 0) -
                                  (kernels.sums_in_products ? stretch.summed : 0));
  parts.update += moving(chip, stretch.updated) * kUpdated;
}

void add_messages(const MessageGroup& group, const GroupLinks& links, const Cluster& cluster, WorkParts& parts) {
  MessageParts& kind = parts_of(group.carried, parts);
  const auto n = static_cast<double>(links.ranks);
  const double bytes = group.kind == CollectiveKind::all_gather ? group.bytes * n : group.bytes;
  parts.kernels += group.starts;
  const bool permutes = group.kind == CollectiveKind::collective_permute;  // each rank sends all of its data to one
  const double rounds = group.kind == CollectiveKind::all_reduce ? 2 : 1, share = permutes ? 1 : (n - 1) / n;
  // An all_reduce of many ranks may use trees, whose steps grow with the logarithm.
  double hops = group.kind == CollectiveKind::all_to_all || permutes ? 1 : rounds * (n - 1);
  if (group.kind == CollectiveKind::all_reduce) hops = std::min(hops, 16 * std::log2(n));
  const double fast = cluster.fast.count() * cluster.fast_reached;
  if (group.kind == CollectiveKind::all_to_all) {
    const auto inside = static_cast<double>(links.inside);
    const double once = sent_once_share(group.sent_once, n / inside);
    kind.seconds += bytes * ((once < 1 ? n : inside) - 1) / n / fast + group.starts * cluster.hop.count();
    if (!links.leaves()) return;
    kind.far_seconds += once * bytes * (n - inside) / n / cluster.network.count() / group.senders;
    kind.seconds += bytes * (n - inside) / n / fast * (1 - 1 / group.senders);
    kind.far_hops += group.starts * hops;
  } else if (links.leaves()) {
    kind.far_seconds += rounds * bytes * share / links.bandwidth.count();
    kind.far_hops += group.starts * hops;
  } else {
    kind.seconds += rounds * bytes * share / (links.bandwidth.count() * cluster.fast_reached) +
                    group.starts * hops * cluster.hop.count();
  }
}

void add_handover(double bytes, const GroupLinks& links, const Cluster& cluster, MessageParts& parts) {
  if (links.inside < 2) {
    parts.far_seconds += bytes / cluster.network.count();
    parts.far_hops += 1;
  } else {
    parts.seconds += bytes / (cluster.fast.count() * cluster.fast_reached) + cluster.hop.count();
  }
}

StepParts step_parts(const StepRecord& step, const Cluster& cluster, const KernelChoice& kernels) {
  StepParts parts;
  parts.pipeline = step.pipeline;
  parts.microbatches = step.microbatches;
  parts.kernels = kernels;
  parts.machines = static_cast<double>(cluster.machines());
  parts.far_stages = step.stages.size() > 1 && parts.machines > 1;
  Stretches stretches(step.mesh, cluster, kernels);
  parts.tensor_ranks = stretches.tensor_ranks();
  struct StageParts {
    std::vector<ChunkParts> chunks;
    FunctionParts after;
    double model_flops = 0;
  };
  std::map<const StageRecord*, StageParts> known;
  const std::size_t stages = step.stages.size();
  parts.chunks.resize(static_cast<std::size_t>(step.pipeline.num_chunks()));
  for (std::size_t s = 0; s < stages; ++s) {
    const auto [at, first] = known.try_emplace(step.stages[s].get());
    StageParts& stage = at->second;
    if (first) {
      for (const ChunkRecord& chunk : step.stages[s]->chunks)
        stage.chunks.push_back({stretches.of(chunk.forward),
                                stretches.of(kernels.whole_again ? again_to_the_end(chunk) : chunk.backward),
                                stretches.handed_on(chunk.sent)});
      stage.after = stretches.of(step.stages[s]->after);
      stage.model_flops = static_cast<double>(model_flops_of(step, s));
    }
    for (std::size_t i = 0; i < stage.chunks.size(); ++i) parts.chunks[s + i * stages] = stage.chunks[i];
    parts.after.push_back(stage.after);
    parts.model_flops += stage.model_flops * static_cast<double>(cluster.devices) / static_cast<double>(stages);
  }
  return parts;
}

StepParts step_parts(std::span<const Program* const> stages, const PipelineStrategy& pipeline, int microbatches,
                     const Cluster& cluster, const KernelChoice& kernels) {
  return step_parts(step_record(stages, pipeline, microbatches), cluster, kernels);
}

}  // namespace systole
