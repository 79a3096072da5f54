#include "predict/perf/reuse.h"

#include <algorithm>
#include <set>

#include "describe/program/memory.h"

namespace systole {
namespace {

double bytes_in(const Graph& graph, std::span<const ValueId> values) {
  double bytes = 0;
  for (const ValueId id : values) bytes += static_cast<double>(graph.type(id).bytes().count());
  return bytes;
}

// The fraction of an operand that a kernel touches; a lookup touches a part of its table.
double part_of(Bytes touched, double whole) {
  return whole == 0 ? 0 : std::min(1.0, static_cast<double>(touched.count()) / whole);
}

}  // namespace

std::vector<ValueId> distinct(std::span<const ValueId> values) {
  std::vector<ValueId> once;
  for (const ValueId id : values) {
    if (std::find(once.begin(), once.end(), id) == once.end()) once.push_back(id);
  }
  return once;
}

ReuseStack::ReuseStack(const Graph& graph, const MachineSpeed& speed, Bytes ago)
    : graph_(graph), speed_(speed), places_(ago), ago_(static_cast<std::size_t>(graph.num_values())) {
  for (int v = 0; v < graph.num_values(); ++v)
    roots_.push_back(static_cast<std::size_t>(storage_of(graph, ValueId{v}).index));
  for (const GraphInput& input : graph.inputs()) ago_[root(input.value)] = ago;
  for (const GraphOutput& output : graph.outputs()) ago_[root(output.value)] = ago;
}

void ReuseStack::touch(ValueId value, Bytes bytes) {
  const std::size_t of = root(value);
  std::erase_if(stack_, [&](const Touched& t) { return t.value == of; });
  stack_.push_back({of, bytes});
}

Bytes ReuseStack::distance(std::size_t value, Bytes bytes) const {
  Bytes since = bytes;
  for (auto t = stack_.rbegin(); t != stack_.rend(); ++t) {
    if (t->value == value) return since;
    since += t->bytes;
  }
  return std::max(since, ago_[value].value_or(since));
}

Seconds ReuseStack::moving(const GraphNode& node, const Work& work, bool update) {
  const std::vector<ValueId> operands = distinct(node.operands);
  const double read = part_of(work.read, bytes_in(graph_, operands)),
               written = part_of(work.written, bytes_in(graph_, node.results));
  const auto part = [&](ValueId id, double share) { return graph_.type(id).bytes() * share; };
  Bytes all;
  for (const ValueId id : operands) all += part(id, read);
  for (const ValueId id : node.results) all += part(id, written);
  Seconds time;
  for (const ValueId id : operands) {
    const Bytes bytes = part(id, read);
    time += bytes / bandwidth_for(speed_, distance(root(id), bytes), update ? Touch::update : Touch::read);
  }
  for (const ValueId id : node.results) {
    const Bytes bytes = part(id, written);
    time += bytes / bandwidth_for(speed_, std::max(all, ago_[root(id)].value_or(places_)),
                                  update ? Touch::update : Touch::write);
  }
  for (const ValueId id : operands) touch(id, part(id, read));
  for (const ValueId id : node.results) touch(id, part(id, written));
  return time;
}

Bytes touched_by(const Graph& graph) {
  Bytes bytes;
  std::set<std::int32_t> seen;
  const auto add = [&](ValueId id) {
    if (seen.insert(storage_of(graph, id).index).second) bytes += graph.type(id).bytes();
  };
  for (const GraphNode& node : graph.nodes()) {
    std::for_each(node.operands.begin(), node.operands.end(), add);
    std::for_each(node.results.begin(), node.results.end(), add);
  }
  return bytes;
}

}  // namespace systole
