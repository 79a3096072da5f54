#include "describe/ir/verify.h"

#include <set>

#include "describe/ir/op.h"
#include "describe/ir/work.h"

namespace systole {
namespace {

void verify_node(const Graph& graph, const GraphNode& node, std::size_t index, const std::vector<bool>& defined) {
  for (const ValueId id : node.operands) {
    CHECK(id.index >= 0 && id.index < graph.num_values(), "graph '{}', node {} '{}': operand %{} is out of range",
          graph.name(), index, node.op->name, id.index);
    CHECK(defined[static_cast<std::size_t>(id.index)],
          "graph '{}', node {} '{}': operand %{} is used before it is defined", graph.name(), index, node.op->name,
          id.index);
  }
  for (const Graph& region : node.regions) verify(region);
  const std::vector<Type> operands = operand_types(graph, node);
  const std::vector<Type> inferred = node.op->infer(OpCall{*node.op, node.attrs, operands, node.regions});
  CHECK(inferred.size() == node.results.size(), "graph '{}', node {} '{}': {} results, not {}", graph.name(), index,
        node.op->name, node.results.size(), inferred.size());
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    const Type& result = graph.type(node.results[i]);
    CHECK(inferred[i] == result, "graph '{}', node {} '{}': result {} is {}, should be {}", graph.name(), index,
          node.op->name, i, to_string(result), to_string(inferred[i]));
  }
}

}  // namespace

void verify(const Graph& graph) {
  std::vector<bool> defined(static_cast<std::size_t>(graph.num_values()), false);
  std::set<std::string_view> names;
  for (const GraphInput& input : graph.inputs()) {
    CHECK(names.insert(input.name).second, "graph '{}': two inputs are named '{}'", graph.name(), input.name);
    defined[static_cast<std::size_t>(input.value.index)] = true;
  }
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const GraphNode& node = graph.nodes()[i];
    verify_node(graph, node, i, defined);
    for (const ValueId id : node.results) defined[static_cast<std::size_t>(id.index)] = true;
  }
  for (const GraphOutput& output : graph.outputs()) {
    CHECK(output.value.index >= 0 && output.value.index < graph.num_values() &&
              defined[static_cast<std::size_t>(output.value.index)],
          "graph '{}': output '{}' is defined nowhere", graph.name(), output.name);
  }
}

}  // namespace systole
