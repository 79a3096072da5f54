#include <map>
#include <set>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

// One pattern to move: sum = add(input, result), add(input, cast(result)) or cast(result).
struct Sum {
  int result;  // index in the repeat's results
  std::optional<ValueId> input;
  ValueId sum;
  std::optional<DType> cast;
};

class AdditionMover {
 public:
  explicit AdditionMover(const Graph& graph) : from_(graph), to_(graph.name()), map_(to_, graph) {
    readers_.assign(static_cast<std::size_t>(graph.num_values()), 0);
    for (const GraphNode& node : graph.nodes()) {
      for (const ValueId id : node.operands) ++readers_[index(id)];
    }
    for (const GraphOutput& output : graph.outputs()) ++readers_[index(output.value)];
  }

  Graph run() {
    for (const GraphNode& node : from_.nodes()) find_addition(node);
    for (int n = 0; n < static_cast<int>(from_.nodes().size()); ++n) find_cast(n);
    for (int n = 0; n < static_cast<int>(from_.nodes().size()); ++n) {
      const GraphNode& node = from_.nodes()[static_cast<std::size_t>(n)];
      if (moved_.count(n) > 0) continue;
      const auto sums = sums_.find(n);
      if (sums != sums_.end()) {
        extend(node, sums->second);
      } else {
        map_.copy(node);
      }
    }
    map_.copy_outputs();
    return std::move(to_);
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }
  const Type& type(ValueId id) const { return from_.type(id); }

  // Whether `made` is a stacked result of a repeat that exactly one node reads.
  bool is_stacked(ValueId made) const {
    const NodeId maker = from_.producer(made);
    return maker.valid() && readers_[index(made)] == 1 && is(from_.node(maker), "repeat") &&
           from_.result_index(made) >= from_.node(maker).attrs.get_int("carries");
  }

  void move(ValueId made, std::optional<ValueId> input, ValueId sum, std::optional<DType> cast) {
    moved_.insert(from_.producer(sum).index);
    sums_[from_.producer(made).index].push_back({from_.result_index(made), input, sum, cast});
  }

  void find_addition(const GraphNode& node) {
    if (!is(node, "add") || !(type(node.operands[0]) == type(node.operands[1]))) return;
    for (const int side : {0, 1}) {
      const ValueId input = node.operands[static_cast<std::size_t>(side)];
      const ValueId added = node.operands[static_cast<std::size_t>(1 - side)];
      if (from_.producer(input).valid() || !from_.producer(added).valid() || readers_[index(added)] != 1) continue;
      const NodeId reader = from_.producer(added);
      const bool casts = is(from_.node(reader), "cast");
      const ValueId made = casts ? from_.node(reader).operands[0] : added;
      if (!is_stacked(made)) continue;
      if (casts) moved_.insert(reader.index);
      move(made, input, node.results[0], casts ? std::optional(type(added).dtype) : std::nullopt);
      return;
    }
  }

  void find_cast(int n) {
    const GraphNode& node = from_.nodes()[static_cast<std::size_t>(n)];
    if (is(node, "cast") && !moved_.contains(n) && is_stacked(node.operands[0]))
      move(node.operands[0], std::nullopt, node.results[0], type(node.results[0]).dtype);
  }

  // Emits the repeat with the inputs as additional stacked operands and the additions and casts in its body.
  void extend(const GraphNode& node, const std::vector<Sum>& sums) {
    const auto first_shared = static_cast<std::size_t>(node.attrs.get_int("carries") + node.attrs.get_int("stacked"));
    const Graph& body = node.regions[0];
    Graph wider(body.name());
    std::vector<Value> inner, slices, operands;
    for (std::size_t i = 0; i <= node.operands.size(); ++i) {
      if (i == first_shared) {
        for (const Sum& sum : sums) {
          if (!sum.input) continue;
          operands.push_back(map_[*sum.input]);
          slices.push_back(wider.input(fmt::format("addend.{}", sum.result), slice_type(type(*sum.input))));
        }
      }
      if (i == node.operands.size()) break;
      operands.push_back(map_[node.operands[i]]);
      inner.push_back(wider.input(body.inputs()[i].name, body.type(body.inputs()[i].value)));
    }
    std::vector<Value> outputs = inline_graph(wider, body, inner);
    auto slice = slices.begin();
    for (const Sum& sum : sums) {
      Value& output = outputs[static_cast<std::size_t>(sum.result)];
      if (sum.cast) output = cast(output, *sum.cast);
      if (sum.input) output = add(*slice++, output);
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) wider.output(body.outputs()[o].name, outputs[o]);
    GraphNode wide = node;
    wide.regions = one_region(std::move(wider));
    wide.attrs.set("stacked", node.attrs.get_int("stacked") + static_cast<std::int64_t>(slices.size()));
    const std::vector<Value> results = copy_node(to_, wide, operands);
    for (std::size_t r = 0; r < results.size(); ++r) map_.set(node.results[r], results[r]);
    for (const Sum& sum : sums) map_.set(sum.sum, results[static_cast<std::size_t>(sum.result)]);
  }

  const Graph& from_;
  Graph to_;
  ValueMap map_;
  std::vector<int> readers_;
  std::map<int, std::vector<Sum>> sums_;  // by the node of the repeat
  std::set<int> moved_;                   // nodes that disappear
};

}  // namespace

Graph add_in_repeats(const Graph& graph) { return AdditionMover(graph).run(); }

}  // namespace systole
