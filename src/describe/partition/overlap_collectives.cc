#include "describe/partition/overlap_collectives.h"

#include <algorithm>
#include <string>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/program/collective_call.h"
#include "describe/program/memory.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

bool sends(const Graph& graph, const GraphNode& node) {
  return is_collective(node) && collective_call(graph, node).parts > 1;
}

// True for nodes that only convert or move their operand.
bool only_converts(const GraphNode& node) {
  if (is(node, "fusion")) {
    const auto& chain = node.regions[0].nodes();
    return node.operands.size() == 1 &&
           std::all_of(chain.begin(), chain.end(), [](const GraphNode& inner) { return is(inner, "cast"); });
  }
  return node.op->view || is(node, "cast") || is(node, "copy") || is(node, "transpose");
}

// Per input of a body: true for a slice of a stored parameter, converted or not.
std::vector<bool> parameter_slices(const Graph& graph, const GraphNode& repeat) {
  const auto carries = static_cast<std::size_t>(repeat.attrs.get_int("carries")),
             stacked = static_cast<std::size_t>(repeat.attrs.get_int("stacked"));
  std::vector<bool> slices(repeat.operands.size(), false);
  for (std::size_t i = carries; i < carries + stacked; ++i) {
    ValueId id = repeat.operands[i];
    while (graph.producer(id).valid() && only_converts(graph.node(graph.producer(id))))
      id = graph.node(graph.producer(id)).operands[0];
    for (const GraphInput& input : graph.inputs()) slices[i] = slices[i] || (input.value == id && input.parameter);
  }
  return slices;
}

class OverlapPass {
 public:
  // `slices`: parameter_slices of a body with several iterations; otherwise empty.
  OverlapPass(const Graph& graph, std::vector<bool> slices, std::size_t carries, bool body)
      : graph_(graph), slices_(std::move(slices)), carries_(carries), body_(body) {}

  Graph run() {
    const auto size = graph_.nodes().size();
    readers_.resize(static_cast<std::size_t>(graph_.num_values()));
    for (std::size_t n = 0; n < size; ++n) {
      for (const ValueId id : graph_.nodes()[n].operands)
        readers_[static_cast<std::size_t>(id.index)].push_back(static_cast<int>(n));
    }
    find_ahead();
    find_early();
    put_in_order();
    return rebuilt();
  }

 private:
  static std::size_t index(int n) { return static_cast<std::size_t>(n); }
  const GraphNode& node(int n) const { return graph_.nodes()[index(n)]; }
  int size() const { return static_cast<int>(graph_.nodes().size()); }
  int producer(ValueId id) const { return graph_.producer(id).valid() ? graph_.producer(id).index : -1; }

  // Gathers of slices of stored parameters, and the conversions that lead to them.
  void find_ahead() {
    ahead_.assign(index(size()), false);
    if (slices_.empty()) return;
    std::vector<bool> from_slice(static_cast<std::size_t>(graph_.num_values()), false);
    for (std::size_t i = 0; i < slices_.size(); ++i)
      from_slice[static_cast<std::size_t>(graph_.inputs()[i].value.index)] = slices_[i];
    std::vector<bool> carried(static_cast<std::size_t>(graph_.num_values()), false);
    for (std::size_t c = 0; c < carries_; ++c)
      carried[static_cast<std::size_t>(storage_of(graph_, graph_.outputs()[c].value).index)] = true;
    for (int n = 0; n < size(); ++n) {
      const GraphNode& each = node(n);
      const bool gathers = is(each, "all_gather") && sends(graph_, each);
      if (!gathers && !only_converts(each)) continue;
      if (each.operands.size() != 1 || !from_slice[static_cast<std::size_t>(each.operands[0].index)]) continue;
      const auto result = static_cast<std::size_t>(each.results[0].index);
      from_slice[result] = !carried[result];
      if (!gathers || carried[result]) continue;
      for (int on_the_way = n; on_the_way >= 0; on_the_way = producer(node(on_the_way).operands[0]))
        ahead_[index(on_the_way)] = true;
    }
  }

  // Collectives, and conversions that only they read. Permutes stay where a step of their ring begins: all of them at
  // once would hold the keys of all steps at once.
  void find_early() {
    early_.assign(index(size()), false);
    for (int n = size(); n-- > 0;) {
      const GraphNode& each = node(n);
      if (ahead_[index(n)]) {
        early_[index(n)] = true;
      } else if (sends(graph_, each)) {
        early_[index(n)] = !is(each, "collective_permute");
      } else if (only_converts(each)) {
        const std::vector<int>& readers = readers_[static_cast<std::size_t>(each.results[0].index)];
        early_[index(n)] = each.op->view || (!readers.empty() && !is_output(each.results[0]) &&
                                             std::all_of(readers.begin(), readers.end(),
                                                         [&](int reader) { return early_[index(reader)]; }));
      }
    }
  }

  bool is_output(ValueId id) const {
    return std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                       [&](const GraphOutput& output) { return output.value == id; });
  }

  // True for a node of a body that reads a collective's result and that only outputs read.
  bool hands_on(int n) const {
    if (!body_ || early_[index(n)] || is(node(n), "repeat")) return false;
    for (const ValueId id : node(n).results) {
      if (!readers_[static_cast<std::size_t>(id.index)].empty()) return false;
    }
    return std::any_of(node(n).operands.begin(), node(n).operands.end(), [&](ValueId id) {
      const int from = producer(storage_of(graph_, id));
      return from >= 0 && !ahead_[index(from)] && sends(graph_, node(from));
    });
  }

  void put_in_order() {
    placed_.assign(index(size()), false);
    std::vector<int> late;
    for (int n = 0; n < size(); ++n) {
      place_early(n);
      if (placed_[index(n)]) continue;
      if (hands_on(n)) {
        late.push_back(n);
      } else {
        place(n);
      }
    }
    place_early(size());
    for (const int n : late) place(n);
  }

  // Places early nodes that are ready, in order, up to the next repeat.
  void place_early(int from) {
    for (int n = from; n < size(); ++n) {
      if (is(node(n), "repeat")) return;
      if (placed_[index(n)] || !early_[index(n)]) continue;
      const bool ready = std::all_of(node(n).operands.begin(), node(n).operands.end(),
                                     [&](ValueId id) { return producer(id) < 0 || placed_[index(producer(id))]; });
      if (ready) place(n);
    }
  }

  void place(int n) {
    order_.push_back(n);
    placed_[index(n)] = true;
  }

  Graph rebuilt() const {
    Graph to(graph_.name());
    ValueMap map(to, graph_);
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const int n = order_[at];
      const GraphNode& from = node(n);
      const bool ahead = ahead_[index(n)], beside = !ahead && sends(graph_, from) && runs_beside_others(at);
      if (!ahead && !beside && !is(from, "repeat")) {
        map.copy(from);
        continue;
      }
      GraphNode copy{from.op, from.attrs, {}, {}, from.regions, from.recomputed};
      if (is(from, "repeat")) {
        std::vector<bool> slices;
        if (from.attrs.get_int("count") > 1) slices = parameter_slices(graph_, from);
        const auto carries = static_cast<std::size_t>(from.attrs.get_int("carries"));
        copy.regions = one_region(OverlapPass(from.regions[0], std::move(slices), carries, true).run());
      }
      if (ahead) {
        copy.attrs.set(kOverlapAttr, std::string("ahead"));
      } else if (beside) {
        copy.attrs.set(kOverlapAttr, std::string("reader"));
      }
      const std::vector<Value> results = move_node(to, std::move(copy), map.operands(from));
      for (std::size_t r = 0; r < results.size(); ++r) map.set(from.results[r], results[r]);
    }
    map.copy_outputs();
    return to;
  }

  // True if other work runs before the collective's first reader; without a reader, in the next iteration or up to the
  // end of the function.
  bool runs_beside_others(std::size_t at) const {
    const GraphNode& collective = node(order_[at]);
    bool others = false;
    for (std::size_t next = at + 1; next < order_.size(); ++next) {
      const GraphNode& each = node(order_[next]);
      if (each.op->view) continue;
      const bool reads = std::any_of(each.operands.begin(), each.operands.end(),
                                     [&](ValueId id) { return storage_of(graph_, id) == collective.results[0]; });
      if (reads) return others;
      others = others || !ahead_[index(order_[next])];
    }
    return others || body_;
  }

  const Graph& graph_;
  const std::vector<bool> slices_;
  const std::size_t carries_;
  const bool body_;
  std::vector<std::vector<int>> readers_;  // per value
  std::vector<bool> ahead_, early_, placed_;
  std::vector<int> order_;
};

}  // namespace

Graph overlap_collectives(const Graph& function) { return OverlapPass(function, {}, 0, false).run(); }

}  // namespace systole
