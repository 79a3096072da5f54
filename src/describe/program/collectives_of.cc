#include "describe/program/collectives_of.h"

#include <algorithm>
#include <set>

#include "describe/ir/rewrite.h"
#include "ground/mesh/collective_cost.h"

namespace systole {
namespace {

void collect(const Graph& graph, std::int64_t times, int depth, std::vector<CollectiveUse>& uses) {
  for (const GraphNode& node : graph.nodes()) {
    if (is_collective(node)) uses.push_back({collective_call(graph, node), times, depth, overlap_of(node)});
    if (is(node, "repeat")) collect(node.regions[0], times * node.attrs.get_int("count"), depth + 1, uses);
  }
}

// The rank of a device in the collective's group.
std::int32_t place_of(const Mesh& mesh, const CollectiveCall& call, std::int64_t device) {
  const Coordinates at = mesh.coordinates(device);
  std::int64_t place = 0;
  for (const std::string& axis : axes_of(call.axis)) {
    const std::size_t a = mesh.find(axis).value();
    place = place * mesh.axes()[a].size + at[a];
  }
  return static_cast<std::int32_t>(place);
}

const Link* link_of(const Target& target, const std::string& axis) {
  for (const Link& link : target.links) {
    if (link.axis_kind == axis) return &link;
  }
  return target.links.empty() ? nullptr : &target.links.front();
}

}  // namespace

std::vector<Axis> unused_axes(const Program& program) {
  std::set<std::string> used;
  for (const Function& function : program.functions) {
    for (const CollectiveUse& use : collectives_of(function.graph))
      for (std::string& axis : axes_of(use.call.axis)) used.insert(std::move(axis));
    for (const GraphNode& node : function.graph.nodes())
      if (is_transfer(node)) used.insert(transfer_call(function.graph, node).axis);
  }
  std::vector<Axis> unused;
  for (std::size_t a = 0; a < program.mesh.axes().size(); ++a) {
    const Axis& axis = program.mesh.axes()[a];
    const bool cuts = std::ranges::any_of(program.values, [&](const ProgramValue& value) {
      return value.cut && value.cut->layout.at[a] != Layout::kWhole;
    });
    if (axis.size > 1 && !cuts && !used.contains(axis.name)) unused.push_back(axis);
  }
  return unused;
}

std::vector<CollectiveUse> collectives_of(const Graph& graph) {
  std::vector<CollectiveUse> uses;
  collect(graph, 1, 0, uses);
  return uses;
}

Bytes bytes_sent(const Program& program, const Function& function, std::int64_t device) {
  Bytes sum;
  for (const GraphNode& node : function.graph.nodes()) {
    if (is_transfer(node) && transfer_call(function.graph, node).sends)
      sum += transfer_call(function.graph, node).bytes();
  }
  for (const CollectiveUse& use : collectives_of(function.graph)) {
    if (use.call.parts == 1) continue;
    sum += bytes_sent(collective_on(use.call, program.mesh).value(), use.call.algorithm,
                      place_of(program.mesh, use.call, device))
               .value() *
           use.times;
  }
  return sum;
}

Bytes bytes_sent(const Program& program, const Schedule& schedule, std::int64_t device) {
  std::vector<std::int64_t> calls(program.functions.size(), 0);
  for (const Action& action : schedule.actions) ++calls[static_cast<std::size_t>(action.function)];
  Bytes sum;
  for (std::size_t f = 0; f < calls.size(); ++f) {
    if (calls[f] > 0) sum += bytes_sent(program, program.functions[f], device) * calls[f];
  }
  return sum;
}

double mean_bytes_sent(const CollectiveCall& call) {
  const double n = static_cast<double>(call.parts);
  const double bytes = static_cast<double>(bytes_of(call.dtype, call.shape).count());
  switch (call.kind) {
    case CollectiveKind::all_reduce: return 2 * bytes * (n - 1) / n;
    case CollectiveKind::all_gather: return bytes * (n - 1);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast: return bytes * (n - 1) / n;
    case CollectiveKind::collective_permute: return call.by % call.parts == 0 ? 0 : bytes;
  }
  return 0;
}

Graph with_algorithms(const Graph& graph, const Mesh& mesh, const Target& target) {
  if (target.links.empty()) return graph;
  return rewrite(graph, [&](const RewriteCall& call) -> std::optional<std::vector<Value>> {
    if (!is_collective(call.node)) return std::nullopt;
    const CollectiveCall collective = collective_call(call.from, call.node);
    std::vector<LinkCost> links;
    for (const std::string& axis : axes_of(collective.axis)) {
      const Link& link = *link_of(target, axis);
      links.push_back({link.latency, link.bandwidth});
    }
    Attrs attrs = call.node.attrs;
    attrs.set("algorithm",
              std::string(name_of(choose_algorithm(collective_on(collective, mesh).value(), collective.dtype, links))));
    std::vector<Value> results = call.to.apply(*call.node.op, call.operands, std::move(attrs));
    call.to.last_node().recomputed = call.node.recomputed;
    return results;
  });
}

}  // namespace systole
