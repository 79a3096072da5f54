#include "predict/perf/product_groups.h"

#include <map>
#include <set>
#include <tuple>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"

namespace systole {
namespace {

// By value: the index of its only reader; -1: none; -2: several, or an output.
std::vector<int> only_readers(const Graph& graph) {
  std::vector<int> readers(static_cast<std::size_t>(graph.num_values()), -1);
  constexpr int kMany = -2;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId id : graph.nodes()[n].operands) {
      int& reader = readers[static_cast<std::size_t>(id.index)];
      reader = reader == -1 || reader == static_cast<int>(n) ? static_cast<int>(n) : kMany;
    }
  }
  for (const GraphOutput& output : graph.outputs()) readers[static_cast<std::size_t>(output.value.index)] = kMany;
  return readers;
}

bool adds(const GraphNode& node) { return is(node, "add") || is(node, "fusion"); }

// For each dim of a product's left operand: 's' if the product sums over it, else '.'. A gradient is the left operand
// of two products, for the input and for the weight, whose sizes may be equal by chance.
std::string summed_dims(const GraphNode& node) {
  const std::string spec = node.attrs.get_string("spec");  // "bse,ehd->bshd"
  const std::string result = spec.substr(spec.find("->") + 2);
  std::string dims;
  for (const char letter : spec.substr(0, spec.find(','))) dims += result.find(letter) == std::string::npos ? 's' : '.';
  return dims;
}

}  // namespace

std::vector<ProductGroup> product_groups(const Graph& graph) {
  // Same left operand, rows and sums: concatenates columns.
  using Beside = std::tuple<int, std::string, std::int64_t, std::int64_t, std::int64_t>;
  std::vector<ProductGroup> groups;
  std::map<Beside, std::size_t> beside;
  for (const GraphNode& node : graph.nodes()) {
    if (!is(node, "contract")) continue;
    const ProductDims dims = product_dims(graph, node);
    const auto [at, first] = beside.try_emplace(
        {node.operands[0].index, summed_dims(node), dims.batch, dims.rows, dims.summed}, groups.size());
    if (first) {
      groups.push_back({dims, {&node}});
    } else {
      groups[at->second].dims.columns += dims.columns;
      groups[at->second].nodes.push_back(&node);
    }
  }
  // Not grouped yet, and only added to others of the same size: concatenates sums.
  using Behind = std::tuple<int, std::int64_t, std::int64_t, std::int64_t>;
  const std::vector<int> readers = only_readers(graph);
  std::vector<ProductGroup> result;
  std::map<Behind, std::size_t> behind;
  for (ProductGroup& group : groups) {
    const int reader = readers[static_cast<std::size_t>(group.nodes[0]->results[0].index)];
    if (group.nodes.size() == 1 && reader >= 0 && adds(graph.nodes()[static_cast<std::size_t>(reader)])) {
      const auto [at, first] =
          behind.try_emplace({reader, group.dims.batch, group.dims.rows, group.dims.columns}, result.size());
      if (!first) {
        result[at->second].dims.summed += group.dims.summed;
        result[at->second].nodes.push_back(group.nodes[0]);
        continue;
      }
    }
    result.push_back(std::move(group));
  }
  return result;
}

}  // namespace systole
