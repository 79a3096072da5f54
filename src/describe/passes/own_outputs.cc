#include <set>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {
Graph own_outputs(const Graph& graph) {
  Graph to(graph.name());
  ValueMap map(to, graph);
  for (const GraphNode& node : graph.nodes()) {
    if (is(node, "repeat")) {
      map.copy(node, one_region(own_outputs(node.regions[0])));
    } else {
      map.copy(node);
    }
  }
  std::set<std::int32_t> taken;
  for (const GraphOutput& output : graph.outputs()) {
    const Value value = map[output.value];
    const ValueId root = storage_of(to, value.id);
    const bool mine = to.producer(root).valid() && taken.insert(root.index).second;
    to.output(output.name, mine ? value : copy(value));
  }
  return to;
}

}  // namespace systole
