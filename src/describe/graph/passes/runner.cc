#include <algorithm>
#include <chrono>

#include "describe/graph/passes/passes.h"
#include "describe/graph/verify.h"

namespace systole {

int count_nodes(const Graph& graph) {
  int count = 0;
  for (const GraphNode& node : graph.nodes()) {
    ++count;
    for (const Graph& region : node.regions) count += count_nodes(region);
  }
  return count;
}

Graph run_passes(Graph graph, std::span<const Pass> passes, std::span<const std::string> skip,
                 std::vector<PassRecord>* records) {
  for (const Pass& pass : passes) {
    PassRecord record{pass.name, Seconds(0), count_nodes(graph), 0,
                      std::find(skip.begin(), skip.end(), pass.name) != skip.end()};
    if (!record.skipped) {
      const auto start = std::chrono::steady_clock::now();
      graph = pass.run(graph);
      record.time = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      try {
        verify(graph);
      } catch (const Failure& f) {
        Error e = f.error();
        e.message = fmt::format("after the pass '{}': {}", pass.name, e.message);
        fail(std::move(e));
      }
    }
    record.nodes_after = count_nodes(graph);
    if (records != nullptr) records->push_back(std::move(record));
  }
  return graph;
}

}  // namespace systole
