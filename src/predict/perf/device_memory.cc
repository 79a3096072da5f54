#include "predict/perf/device_memory.h"

#include <algorithm>

#include "describe/graph/passes/rewrite.h"
#include "predict/perf/kernel_seconds.h"

namespace systole {
namespace {

// Of a parameter the numbers that a device updates: those of a moment of it.
std::int64_t updated(const Program& program, const ProgramValue& parameter) {
  for (const char* state : {"adamw.m/", "sgd.m/"}) {
    if (const auto moment = program.find_value(state + parameter.name))
      return program.values[static_cast<std::size_t>(*moment)].type.num_elements();
  }
  return parameter.type.num_elements();
}

// Parameters in bf16 whole, in f32 where they are updated, instead of in f32 whole.
Bytes copies_of(const Program& program) {
  Bytes bytes;
  for (const ProgramValue& value : program.values) {
    if (value.residence != Residence::parameter || value.type.dtype != DType::f32) continue;
    bytes += Bytes(2 * value.type.num_elements() + 4 * updated(program, value)) - value.type.bytes();
  }
  return bytes;
}

// A score, its dropped twin and the mask of what was dropped.
std::int64_t score_bytes(ProductType type) { return in_32_bits(type) ? 4 + 4 + 1 : 2 + 2 + 1; }

// Stacks without a compiler make the loss from logits in f32, and keep their exponentials (torch's cross_entropy,
// Megatron's vocab_parallel_cross_entropy).
constexpr std::int64_t kLogitCopies = 4 + 4;

// Of the microbatch before, what its loss kept for backward: its softmax in f32.
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

// Of all forward attention of the graph: kept for backward, or of one layer while it is done again.
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

// What a step needs but for what its end works with: all values, and the scratch of what is done for each microbatch.
Bytes without_update(const Program& program) {
  Bytes values, scratch;
  for (const ProgramValue& value : program.values) values += Bytes(value.stride * value.slots);
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
  // Copies may be less than nothing: what the stack needs less than the Program then is no part of the arena.
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
