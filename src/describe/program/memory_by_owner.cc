// Memory by owner: a sweep over all blocks of the arena; the first residence in the order of Residence gets the byte.

#include <algorithm>

#include "describe/program/memory.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

struct Span {
  std::int64_t from, to;
  Residence owner;
};

// The blocks of a scratch: values, owned by `inside`, and workspaces.
void add_places(const Graph& graph, const Placement& placement, std::int64_t base, Residence inside,
                std::vector<Span>& spans) {
  const auto add = [&](const Location& place, Bytes size, Residence owner) {
    if (place.kind == Location::Kind::scratch)
      spans.push_back({base + place.offset, base + place.offset + size.count(), owner});
  };
  for (std::size_t v = 0; v < placement.values.size(); ++v) {
    const ValueId id{static_cast<std::int32_t>(v)};
    const Bytes bytes = graph.type(id).bytes();
    add(placement.values[v], has_twin(graph, id) ? Bytes(twin_stride(bytes)) + bytes : bytes, inside);
  }
  for (std::size_t n = 0; n < placement.nodes.size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    const Placement::Inner& inner = placement.nodes[n];
    add(inner.workspace, inner.workspace_bytes, Residence::workspace);
    for (std::size_t c = 0; c < inner.carry_twins.size(); ++c)
      add(inner.carry_twins[c], graph.type(node.results[c]).bytes(), inside);
    for (std::size_t r = 0; r < inner.regions.size(); ++r)
      add_places(node.regions[r], inner.regions[r], base, inside, spans);
  }
}

}  // namespace

MemoryByOwner memory_by_owner(const Program& program) {
  std::vector<Span> spans;
  for (const ProgramValue& value : program.values) {
    const std::int64_t end = value.offset + value.extent().count();
    // Slot 0 is the gradient; the other slots hold sums over some logical shards (partition/exact.h).
    const bool sums = value.residence == Residence::gradient && value.slots > 1;
    const std::int64_t whole = sums ? value.offset + value.stride : end;
    spans.push_back({value.offset, whole, value.residence});
    if (sums) spans.push_back({whole, end, Residence::partial_sum});
  }
  for (const Function& function : program.functions) {
    const bool adds_up = program.shards && function.name == "reduce";
    add_places(function.graph, function.placement, function.scratch_offset,
               adds_up ? Residence::partial_sum : Residence::activation, spans);
  }

  struct Edge {
    std::int64_t at;
    int owner;
    int change;
  };
  std::vector<Edge> edges;
  for (const Span& span : spans) {
    edges.push_back({span.from, static_cast<int>(span.owner), 1});
    edges.push_back({span.to, static_cast<int>(span.owner), -1});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });

  MemoryByOwner owners;
  std::array<int, kNumResidences> open{};  // per owner: the number of its spans that cover `at`
  std::int64_t at = 0;
  const auto advance = [&](std::int64_t to) {
    const auto top = std::find_if(open.begin(), open.end(), [](int count) { return count > 0; });
    const Bytes bytes(to - at);
    (top == open.end() ? owners.unused : owners.bytes[static_cast<std::size_t>(top - open.begin())]) += bytes;
    at = to;
  };
  for (const Edge& edge : edges) {
    advance(edge.at);
    open[static_cast<std::size_t>(edge.owner)] += edge.change;
  }
  advance(program.arena.count());
  return owners;
}

}  // namespace systole
