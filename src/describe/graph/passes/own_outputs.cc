#include <set>

#include "describe/graph/memory.h"
#include "describe/graph/op.h"
#include "describe/graph/ops/ops.h"
#include "describe/graph/passes/passes.h"
#include "describe/graph/passes/rewrite.h"

namespace systole {
namespace {

Graph own(const Graph& graph) {
  Graph to(graph.name());
  std::vector<Value> outputs = inline_graph(to, graph, copy_inputs(to, graph));
  std::set<std::int32_t> taken;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId root = storage_of(to, outputs[i].id);
    const bool mine = to.producer(root).valid() && taken.insert(root.index).second;
    to.output(graph.outputs()[i].name, mine ? outputs[i] : copy(outputs[i]));
  }
  return to;
}

}  // namespace

Graph own_outputs(const Graph& graph) {
  return own(rewrite(graph, [](const RewriteCall& call) -> std::optional<std::vector<Value>> {
    if (!is(call.node, "repeat")) return std::nullopt;
    GraphNode owned{call.node.op, call.node.attrs, {}, {}, {}, call.node.recomputed};
    for (const Graph& region : call.node.regions) owned.regions.push_back(own(region));
    return move_node(call.to, std::move(owned), call.operands);
  }));
}

}  // namespace systole
