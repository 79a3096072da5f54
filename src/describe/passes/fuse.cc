// Fusion of elementwise chains. A node that is not yet in a chain is the root of a new one. A producer of the root's
// shape joins when each of its readers is in the chain or comes after the root. A later reader makes the value a result
// of the chain; no cycle can arise, because the chain stands where its root stood. Constants, iotas and broadcasts are
// cheap to recompute, so each chain has its own copy; the operand of such a broadcast is an operand of the chain.

#include <algorithm>
#include <map>
#include <set>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

// Whether a kernel can index a broadcast with (i / inner) % period: the operand's dims of more than one element stay
// adjacent.
bool follows_run(const Graph& graph, const GraphNode& node) {
  const Type& from = graph.type(node.operands[0]);
  const Ints& dims = node.attrs.get_ints("dims");
  const Shape& to = graph.type(node.results[0]).shape;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (from.shape[i] == 1) continue;
    if (from.shape[i] != to[static_cast<std::size_t>(dims[i])]) return false;
    for (std::int64_t between = last + 1; last >= 0 && between < dims[i]; ++between) {
      if (to[static_cast<std::size_t>(between)] != 1) return false;
    }
    last = dims[i];
  }
  return true;
}

class Fuser {
 public:
  Fuser(const Graph& graph, const FusionRules& rules)
      : graph_(graph), rules_(rules), chain_of_(graph.nodes().size(), -1) {
    readers_.resize(static_cast<std::size_t>(graph.num_values()));
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      for (const ValueId id : graph.nodes()[n].operands) readers_[index(id)].push_back(static_cast<int>(n));
    }
    constexpr int kAfterAll = 1 << 30;
    for (const GraphOutput& output : graph.outputs()) readers_[index(output.value)].push_back(kAfterAll);
  }

  Graph run() {
    for (int n = static_cast<int>(graph_.nodes().size()) - 1; n >= 0; --n) {
      if (chain_of_[static_cast<std::size_t>(n)] < 0 && graph_.nodes()[static_cast<std::size_t>(n)].op->elementwise)
        grow(n);
    }
    return rebuild();
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }
  const GraphNode& node(int n) const { return graph_.nodes()[static_cast<std::size_t>(n)]; }

  // Whether a node is copied into each chain that reads it: it reads no operand of the chain's shape.
  bool is_source(const GraphNode& n) const {
    if (n.op->elementwise) return n.operands.empty();
    return is(n, "broadcast") && follows_run(graph_, n);
  }

  void grow(int root) {
    const Shape& domain = graph_.type(node(root).results[0]).shape;
    std::set<int, std::greater<>> members{root};  // latest first: a reader joins before its producers are considered
    std::set<int> sources;
    for (auto at = members.begin(); at != members.end(); ++at) {
      for (const ValueId id : node(*at).operands) consider(id, root, domain, members, sources);
      if (static_cast<int>(members.size() + sources.size()) >= rules_.max_steps) break;
    }
    if (members.size() + sources.size() < 2) return;
    const int chain = static_cast<int>(chains_.size());
    std::vector<int> nodes(sources.begin(), sources.end());
    nodes.insert(nodes.end(), members.begin(), members.end());
    std::sort(nodes.begin(), nodes.end());
    if (count_operands(nodes) > rules_.max_operands) return;
    for (const int n : members) chain_of_[static_cast<std::size_t>(n)] = chain;
    chains_.push_back({root, std::move(nodes), members});
  }

  void consider(ValueId id, int root, const Shape& domain, std::set<int, std::greater<>>& members,
                std::set<int>& sources) {
    const NodeId producer = graph_.producer(id);
    if (!producer.valid()) return;
    const GraphNode& candidate = graph_.node(producer);
    if (graph_.type(id).shape != domain) return;
    if (is_source(candidate)) {
      sources.insert(producer.index);
      return;
    }
    if (!candidate.op->elementwise || chain_of_[static_cast<std::size_t>(producer.index)] >= 0) return;
    for (const int reader : readers_[index(id)]) {
      if (members.count(reader) == 0 && reader <= root) return;
    }
    members.insert(producer.index);
  }

  int count_operands(const std::vector<int>& nodes) const {
    const std::set<int> inside(nodes.begin(), nodes.end());
    std::set<int> outside;
    for (const int n : nodes) {
      for (const ValueId id : node(n).operands) {
        if (inside.count(graph_.producer(id).index) == 0) outside.insert(id.index);
      }
    }
    return static_cast<int>(outside.size());
  }

  struct Chain {
    int root;
    std::vector<int> nodes;  // sources and members in order
    std::set<int, std::greater<>> members;
  };

  // Appends the fusion node of a chain to `to` and maps the results that are read outside to its results.
  void emit(Graph& to, const Chain& chain, ValueMap& map) {
    Graph region("chain");
    std::map<int, Value> inside;  // value of graph_ → value of region
    std::vector<Value> operands;
    const auto get = [&](ValueId id) {
      auto found = inside.find(id.index);
      if (found == inside.end()) {
        operands.push_back(map[id]);
        found = inside.emplace(id.index, region.input(std::to_string(operands.size() - 1), graph_.type(id))).first;
      }
      return found->second;
    };
    const std::set<int> nodes(chain.nodes.begin(), chain.nodes.end());
    // Operands first: the inputs of a region come before its nodes.
    for (const int n : chain.nodes) {
      for (const ValueId id : node(n).operands) {
        if (nodes.count(graph_.producer(id).index) == 0) get(id);
      }
    }
    std::vector<ValueId> results;
    std::vector<Value> arguments;
    bool recomputed = true;
    for (const int n : chain.nodes) {
      arguments.clear();
      for (const ValueId id : node(n).operands) arguments.push_back(get(id));
      const Value value = region.value(region.copy(graph_, node(n), arguments).results[0]);
      const ValueId id = node(n).results[0];
      inside.emplace(id.index, value);
      if (chain.members.count(n) == 0) continue;
      recomputed = recomputed && node(n).recomputed;
      const auto outside = [&](int reader) { return chain.members.count(reader) == 0; };
      if (std::any_of(readers_[index(id)].begin(), readers_[index(id)].end(), outside)) results.push_back(id);
    }
    for (const ValueId id : results) region.output(std::to_string(region.outputs().size()), inside.at(id.index));
    std::vector<Graph> regions;
    regions.push_back(std::move(region));
    const std::vector<Value> values = to.apply("fusion", operands, {}, std::move(regions));
    to.last_node().recomputed = recomputed;
    for (std::size_t i = 0; i < results.size(); ++i) map.set(results[i], values[i]);
  }

  Graph rebuild() {
    Graph to(graph_.name());
    ValueMap map(to, graph_);
    for (int n = 0; n < static_cast<int>(graph_.nodes().size()); ++n) {
      const int chain = chain_of_[static_cast<std::size_t>(n)];
      if (chain < 0 && is(node(n), "repeat")) {
        map.copy(node(n), one_region(fuse_chains(node(n).regions[0], rules_)));
      } else if (chain < 0) {
        map.copy(node(n));
      } else if (chains_[static_cast<std::size_t>(chain)].root == n) {
        emit(to, chains_[static_cast<std::size_t>(chain)], map);
      }
    }
    map.copy_outputs();
    return to;
  }

  const Graph& graph_;
  const FusionRules& rules_;
  std::vector<int> chain_of_;  // per node; sources belong to none
  std::vector<std::vector<int>> readers_;
  std::vector<Chain> chains_;
};

}  // namespace

Graph fuse_chains(const Graph& graph, const FusionRules& rules) {
  if (!rules.chains) return graph;
  return drop_dead(Fuser(graph, rules).run());
}

}  // namespace systole
