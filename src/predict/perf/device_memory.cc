#include "predict/perf/device_memory.h"

#include <algorithm>

#include "describe/ir/rewrite.h"
#include "predict/perf/kernel_seconds.h"

namespace systole {
namespace {

// Elements of a parameter that a device updates: as many as its moment has.
std::int64_t updated(const Program& program, const ProgramValue& parameter) {
  for (const char* state : {"adamw.m/", "sgd.m/"}) {
    if (const auto moment = program.find_value(state + parameter.name))
      return program.values[static_cast<std::size_t>(*moment)].type.num_elements();
  }
  return parameter.type.num_elements();
}

// Whole parameters in bf16, plus f32 where they are updated, minus whole parameters in f32.
Bytes copies_of(const Program& program) {
  Bytes bytes;
  for (const ProgramValue& value : program.values) {
    if (value.residence != Residence::parameter || value.type.dtype != DType::f32) continue;
    bytes += Bytes(2 * value.type.num_elements() + 4 * updated(program, value)) - value.type.bytes();
  }
  return bytes;
}

// A score, the score after dropout, and the dropout mask.
std::int64_t score_bytes(ProductType type) { return in_32_bits(type) ? 4 + 4 + 1 : 2 + 2 + 1; }

// Bytes per logit: stacks without a compiler compute the loss from logits in f32 and keep the exponentials (torch's
// cross_entropy, Megatron's vocab_parallel_cross_entropy).
constexpr std::int64_t kLogitCopies = 4 + 4;

// Bytes per logit that the previous microbatch's loss saved for backward: its softmax in f32.
constexpr std::int64_t kHeldLogitCopy = 4;

bool has_microbatches(const Program& program) {
  return std::ranges::any_of(program.schedules, [](const Schedule& schedule) {
    return std::ranges::any_of(schedule.actions, [](const Action& action) { return action.microbatch > 0; });
  });
}

std::int64_t logits_of(const Graph& graph) {
  std::int64_t most = 0;
  for (const GraphNode& node : graph.nodes())
    if (is(node, "cross_entropy")) most = std::max(most, graph.type(node.operands[0]).num_elements());
  return most;
}

// Scores of all forward attention in the graph: saved for backward, or those of one layer while it is recomputed.
std::int64_t scores_of(const Graph& graph, bool recomputed, std::int64_t layers) {
  std::int64_t scores = 0;
  for (const GraphNode& node : graph.nodes()) {
    if (is(node, "repeat")) {
      scores += scores_of(node.regions[0], recomputed, layers * node.attrs.get_int("count"));
    } else if (is(node, "attention") && node.recomputed == recomputed) {
      const AttentionShape shape = attention_shape(graph, node);
      scores += shape.rows * shape.queries * shape.keys_of_row * (recomputed ? 1 : layers);
    }
  }
  return scores;
}

Bytes unfused_scores(const Program& program, ProductType type) {
  std::int64_t kept = 0, again = 0, slots = 1;
  for (const ProgramValue& value : program.values)
    if (value.residence == Residence::residual) slots = std::max<std::int64_t>(slots, value.slots);
  for (const Function& function : program.functions) {
    if (function.name.starts_with("forward")) kept += scores_of(function.graph, false, 1) * slots;
    if (function.name.starts_with("backward")) again += scores_of(function.graph, true, 1);
  }
  return Bytes((again > 0 ? again : kept) * score_bytes(type));
}

// Memory of a step without the scratch of the update: all values, and the scratch of forward and backward.
Bytes without_update(const Program& program) {
  Bytes values, scratch;
  for (const ProgramValue& value : program.values) values += value.extent();
  for (const Function& function : program.functions)
    if (function.name.starts_with("forward") || function.name.starts_with("backward"))
      scratch = std::max(scratch, function.scratch);
  return values + scratch;
}

}  // namespace

Bytes DeviceMemory::total() const {
  Bytes sum;
  for (const auto& [name, bytes] : terms) sum += bytes;
  return sum;
}

MemoryParts placeless_memory(const Program& program, const KernelChoice& kernels) {
  MemoryParts parts;
  if (kernels.half_copies) parts.copies = copies_of(program);
  if (kernels.attention == KernelChoice::Attention::unfused) parts.scores = unfused_scores(program, kernels.products);
  for (const Function& function : program.functions)
    if (function.name.starts_with("forward")) parts.logits = std::max(parts.logits, logits_of(function.graph));
  return parts;
}

MemoryParts memory_parts(const Program& program, const KernelChoice& kernels) {
  MemoryParts parts = placeless_memory(program, kernels);
  parts.arena = program.arena;
  parts.logits_held = has_microbatches(program) ? parts.logits : 0;
  const MemoryByOwner owners = memory_by_owner(program);
  parts.activations = owners[Residence::residual] + owners[Residence::activation] + owners[Residence::workspace];
  if (!kernels.updates_in_parts) return parts;
  const Bytes saved = std::max(Bytes(), program.arena - without_update(program));
  parts.arena -= saved;
  parts.activations -= std::min(saved, owners[Residence::activation]);
  return parts;
}

DeviceMemory device_memory(const MemoryParts& parts, const StackProfile& stack) {
  const auto share = [](Bytes bytes, double of) {
    return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.count()) * of));
  };
  // Copies may be negative: the arena is then smaller by what the stack saves over the Program.
  const Bytes less = std::min(Bytes(), parts.copies);
  return {{{"arena", parts.arena + less},
           {"copies", parts.copies - less},
           {"scores", parts.scores},
           {"logits", Bytes(stack.whole_step ? 0 : parts.logits * kLogitCopies)},
           {"loss held", Bytes(stack.holds_loss ? parts.logits_held * kHeldLogitCopy : 0)},
           {"fragments", share(parts.activations + parts.scores, stack.fragments)},
           {"context", share(kGiB, stack.context)}}};
}

DeviceMemory device_memory(const Program& program, const KernelChoice& kernels, const StackProfile& stack) {
  return device_memory(memory_parts(program, kernels), stack);
}

}  // namespace systole
