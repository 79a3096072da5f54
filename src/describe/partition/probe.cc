#include "describe/partition/probe.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "ground/base/errors.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

std::int64_t iterations_of(const GraphNode& node) { return is(node, "repeat") ? node.attrs.get_int("count") : 0; }

// Calls visit(name, value) for each named result of the graph's nodes, bodies excluded.
template <typename Visit>
void for_each_named(const Graph& graph, const Visit& visit) {
  for (const GraphNode& node : graph.nodes()) {
    for (const ValueId id : node.results) {
      if (!graph.value_name(id).empty()) visit(graph.value_name(id), id);
    }
  }
}

bool among(std::span<const Probeable> probes, const std::string& name, bool repeated) {
  return std::any_of(probes.begin(), probes.end(),
                     [&](const Probeable& p) { return p.name == name && (p.iterations > 0) == repeated; });
}

bool matches(const std::string& glob, const Probeable& probe) {
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, probe.iterations); ++i) {
    if (glob_matches(glob, probe.at(i))) return true;
  }
  return false;
}

}  // namespace

std::string Probeable::at(std::int64_t iteration) const {
  if (iterations == 0) return name;
  return fmt::format("block.{}.{}", iteration, name.starts_with("block.") ? name.substr(6) : name);
}

std::vector<Probeable> probeable(const Graph& graph) {
  std::vector<Probeable> all;
  const auto add = [&all](const std::string& name, std::int64_t iterations) {
    if (!among(all, name, iterations > 0)) all.push_back({name, iterations});
  };
  for (const GraphNode& node : graph.nodes()) {
    const std::int64_t iterations = iterations_of(node);
    if (iterations > 0)
      for_each_named(node.regions[0], [&](const std::string& name, ValueId) { add(name, iterations); });
    for (const ValueId id : node.results) {
      if (!graph.value_name(id).empty()) add(graph.value_name(id), 0);
    }
  }
  return all;
}

bool glob_matches(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

Result<std::vector<Probeable>> probes_matching(const Graph& graph, std::span<const std::string> globs,
                                               std::span<const std::string> also) {
  const std::vector<Probeable> all = probeable(graph);
  std::vector<Probeable> found;
  std::vector<Error> unknown;
  for (const std::string& glob : globs) {
    bool any = std::any_of(also.begin(), also.end(), [&](const std::string& name) { return glob_matches(glob, name); });
    for (const Probeable& probe : all) {
      if (!matches(glob, probe)) continue;
      any = true;
      if (!among(found, probe.name, probe.iterations > 0)) found.push_back(probe);
    }
    if (any) continue;
    std::vector<std::string> names(also.begin(), also.end());
    for (const Probeable& probe : all) names.push_back(probe.at(0));
    unknown.push_back(
        error(ErrorKind::not_found, "no value of the model is named '{}'", glob).hinted(nearest_hint(glob, names)));
  }
  if (unknown.empty()) return found;
  return together(std::move(unknown));
}

Graph with_probes(const Graph& graph, std::span<const Probeable> probes) {
  Graph to(graph.name());
  ValueMap map(to, graph);
  std::vector<std::pair<std::string, Value>> shown;
  std::set<std::string> taken;  // names seen: the first value of a name wins
  for (const GraphNode& node : graph.nodes()) {
    std::vector<std::string> inside;
    if (iterations_of(node) > 0) {
      std::vector<Graph> body{node.regions[0]};
      for_each_named(node.regions[0], [&](const std::string& name, ValueId id) {
        if (!among(probes, name, true) || !taken.insert("block." + name).second) return;
        body[0].output("probe/" + name, body[0].value(id));
        inside.push_back(name);
      });
      const std::vector<Value> results = to.apply(*node.op, map.operands(node), node.attrs, std::move(body));
      to.last_node().recomputed = node.recomputed;
      for (std::size_t i = 0; i < node.results.size(); ++i) map.set(node.results[i], results[i]);
      for (std::size_t i = 0; i < inside.size(); ++i)
        shown.emplace_back("block." + inside[i], results[node.results.size() + i]);
    } else {
      map.copy(node);
    }
    for (const ValueId id : node.results) {
      const std::string& name = graph.value_name(id);
      if (!name.empty() && among(probes, name, false) && taken.insert(name).second) shown.emplace_back(name, map[id]);
    }
  }
  map.copy_outputs();
  for (const auto& [name, value] : shown) to.output("probe/" + name, value);
  return to;
}

}  // namespace systole
