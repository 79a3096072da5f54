#include "describe/program/overlap.h"

#include <algorithm>

#include "describe/ir/op.h"
#include "describe/program/memory.h"

namespace systole {
namespace {

// True if the result may take the operand's place; the operand then needs no lifetime beyond the node.
bool may_stay_in_place(const Graph& graph, const GraphNode& node) {
  const std::vector<int> operands = in_place_operands(graph, node, 0);
  return std::find(operands.begin(), operands.end(), 0) != operands.end();
}

}  // namespace

Overlap overlap_of(const GraphNode& node) {
  if (node.attrs.find(kOverlapAttr) == nullptr) return Overlap::none;
  const std::string& name = node.attrs.get_string(kOverlapAttr);
  if (name == "reader") return Overlap::reader;
  if (name == "ahead") return Overlap::ahead;
  fail(error(ErrorKind::invalid, "{} overlaps '{}': reader or ahead", node.op->name, name));
}

bool has_twin(const Graph& graph, ValueId id) {
  const ValueId storage = storage_of(graph, id);
  const NodeId producer = graph.producer(storage);
  if (!producer.valid() || overlap_of(graph.node(producer)) != Overlap::ahead) return false;
  return std::none_of(graph.outputs().begin(), graph.outputs().end(),
                      [&](const GraphOutput& output) { return storage_of(graph, output.value) == storage; });
}

std::int64_t twin_stride(Bytes bytes) { return aligned(bytes.count(), kTwinAlignment); }

int first_reader(const Graph& graph, int n) {
  const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
  const auto reads = [&](const GraphNode& reader) {
    return std::any_of(reader.operands.begin(), reader.operands.end(), [&](ValueId id) {
      const ValueId storage = storage_of(graph, id);
      return std::find(node.results.begin(), node.results.end(), storage) != node.results.end();
    });
  };
  const int size = static_cast<int>(graph.nodes().size());
  for (int r = n + 1; r < size; ++r) {
    const GraphNode& reader = graph.nodes()[static_cast<std::size_t>(r)];
    if (!reader.op->view && reads(reader)) return r;
  }
  return size;
}

std::vector<int> last_uses(const Graph& graph) {
  std::vector<int> last(static_cast<std::size_t>(graph.num_values()), -1);
  const auto at = [&](ValueId id) -> int& { return last[static_cast<std::size_t>(storage_of(graph, id).index)]; };
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId id : graph.nodes()[n].operands) at(id) = static_cast<int>(n);
  }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    if (overlap_of(node) != Overlap::reader) continue;
    const ValueId operand = node.operands[0];
    if (at(operand) == static_cast<int>(n) && may_stay_in_place(graph, node)) continue;
    at(operand) = std::max(at(operand), first_reader(graph, static_cast<int>(n)));
  }
  return last;
}

}  // namespace systole
