#include "execute/runtime/eager.h"

#include <fmt/ranges.h>

#include "describe/ir/op.h"

namespace systole {
namespace {

std::string name_of_value(const Graph& graph, ValueId id) {
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value == id) return output.name;
  }
  for (const GraphInput& input : graph.inputs()) {
    if (input.value == id) return input.name;
  }
  const std::string& name = graph.value_name(id);
  return name.empty() ? fmt::format("%{}", id.index) : name;
}

// "contract"; for a chain also the ops that it runs.
std::string op_text(const GraphNode& node) {
  if (node.regions.empty()) return node.op->name;
  std::vector<std::string> ops;
  for (const GraphNode& inner : node.regions[0].nodes()) ops.emplace_back(inner.op->name);
  return fmt::format("{}({})", node.op->name, fmt::join(ops, " "));
}

TensorStats look(const Graph& graph, ValueId id, const std::byte* at) {
  const Type& type = graph.type(id);
  return stats_of(type.dtype, at, type.num_elements());
}

}  // namespace

void EagerCheck::enter(std::int64_t step, const Action& action, const Function& function) {
  step_ = step;
  if (first_step_ < 0) first_step_ = step;
  microbatch_ = action.microbatch;
  function_ = function.name;
}

std::string EagerCheck::where(const ObservedKernel& kernel) const {
  std::string text = fmt::format("step {}, {} of microbatch {}", step_, function_, microbatch_);
  if (!kernel.layers.empty()) text += fmt::format(", layer {}", fmt::join(kernel.layers, "."));
  return text;
}

void EagerCheck::before(const ObservedKernel& kernel) {
  operands_.clear();
  for (std::size_t i = 0; i < kernel.operands.size(); ++i)
    operands_.push_back(look(*kernel.graph, kernel.node->operands[i], kernel.operands[i]));
}

Status EagerCheck::after(const ObservedKernel& kernel) {
  ++kernels_;
  const Graph& graph = *kernel.graph;
  const GraphNode& node = *kernel.node;
  std::string line;
  for (std::size_t i = 0; i < kernel.results.size(); ++i) {
    const ValueId id = node.results[i];
    const Type& type = graph.type(id);
    const TensorStats stats = look(graph, id, kernel.results[i]);
    if (stats.bad() == 0 || !is_float(type.dtype)) {
      if (step_ == first_step_ && told_)
        line +=
            fmt::format("{}{}: {} {}", i > 0 ? "; " : "", name_of_value(graph, id), to_string(type), range_text(stats));
      continue;
    }
    std::string from;
    for (std::size_t o = 0; o < operands_.size(); ++o) {
      const ValueId operand = node.operands[o];
      from += fmt::format("\n    {}: {} {}", name_of_value(graph, operand), to_string(graph.type(operand)),
                          range_text(operands_[o]));
    }
    const double first = load(type.dtype, kernel.results[i], stats.first_bad);
    return error(ErrorKind::corrupt, "{}: {} makes {} of '{}' {} at {}: {} of {} elements are not numbers\n  from{}",
                 where(kernel), op_text(node), first, name_of_value(graph, id), to_string(type),
                 place_text(type.shape, stats.first_bad), with_commas(stats.bad()), with_commas(stats.count),
                 from.empty() ? " nothing" : from)
        .hinted(
            "the first value of the run that is no number; where its operands are large already, a lower "
            "train.optimizer.rate or a clip; train.precision: f32 shows whether rounding is the cause");
  }
  if (step_ == first_step_ && told_) told_(fmt::format("{}: {} -> {}", where(kernel), op_text(node), line));
  return {};
}

}  // namespace systole
