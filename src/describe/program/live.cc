#include "describe/program/live.h"

#include <algorithm>
#include <set>

#include "describe/ir/rewrite.h"
#include "describe/program/memory.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

// True if the node may overwrite its operand `o` with a result.
bool may_write_over(const GraphNode& node, int o) {
  if (is(node, "fusion")) return true;
  return std::ranges::any_of(node.op->in_place, [o](const InPlace& pair) { return pair.operand == o; });
}

class Counter {
 public:
  explicit Counter(const Function& function) { count(function.graph, function.donated, 0); }

  std::vector<std::int64_t> live;  // per node
  std::int64_t most_in_repeats = 0;

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }

  // `outside`: bytes live in the graphs around this one.
  void count(const Graph& graph, const std::vector<bool>& donated, std::int64_t outside) {
    std::vector<bool> elsewhere(static_cast<std::size_t>(graph.num_values()), false);  // may lie outside the scratch
    for (const GraphOutput& output : graph.outputs()) elsewhere[index(storage_of(graph, output.value))] = true;
    std::vector<bool> may_take(elsewhere.size(), false);  // reusable places outside the scratch
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const std::size_t input = index(graph.inputs()[i].value);
      elsewhere[input] = true;
      may_take[input] = i < donated.size() && donated[i];
    }
    // Prefetched values are double-buffered for as long as the graph runs.
    for (const GraphNode& node : graph.nodes()) {
      for (const ValueId id : node.results) {
        if (node.op->view || !has_twin(graph, id)) continue;
        elsewhere[index(id)] = true;
        outside += 2 * bytes_of_value(graph, index(id));
      }
    }
    const std::vector<int> last = last_uses(graph);
    std::int64_t held = 0;                                         // bytes of computed values that are read again
    std::vector<std::int64_t> dying(graph.nodes().size() + 1, 0);  // of those, by the node of their last use
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const GraphNode& node = graph.nodes()[n];
      std::int64_t results = 0;
      if (!node.op->view) {
        std::set<std::size_t> over;
        bool takes = false;
        for (std::size_t o = 0; o < node.operands.size(); ++o) {
          const std::size_t storage = index(storage_of(graph, node.operands[o]));
          if (!may_write_over(node, static_cast<int>(o))) continue;
          takes = takes || may_take[storage];
          if (last[storage] == static_cast<int>(n) && !elsewhere[storage]) over.insert(storage);
        }
        for (const std::size_t storage : over) results -= bytes_of_value(graph, storage);
        for (const ValueId id : node.results) {
          if (takes) elsewhere[index(id)] = may_take[index(id)] = true;
          if (elsewhere[index(id)]) continue;
          const std::int64_t bytes = bytes_of_value(graph, index(id));
          results += bytes;
          if (last[index(id)] <= static_cast<int>(n)) continue;  // no reader
          held += bytes;
          results -= bytes;
          dying[static_cast<std::size_t>(last[index(id)])] += bytes;
        }
      }
      live.push_back(outside + held + results);
      if (is(node, "repeat")) {
        const std::int64_t around = live.back();
        const std::size_t first = live.size();
        count(node.regions[0], {}, around);
        for (std::size_t i = first; i < live.size(); ++i) most_in_repeats = std::max(most_in_repeats, live[i] - around);
      }
      held -= dying[n];
    }
  }

  static std::int64_t bytes_of_value(const Graph& graph, std::size_t value) {
    return graph.type(ValueId{static_cast<std::int32_t>(value)}).bytes().count();
  }
};

}  // namespace

std::vector<std::int64_t> live_bytes(const Function& function) { return Counter(function).live; }

std::int64_t most_live_in_repeats(const Function& function) { return Counter(function).most_in_repeats; }

}  // namespace systole
