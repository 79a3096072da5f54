// The verifier of locations inside a function. It walks the graph, tracks the live values, and refuses a write over a
// live one; only an operand at its last use may be overwritten, by a node that works in place. A location is in the
// scratch, or in an input or output of the function; in the body of a repeat, of the body.

#include <algorithm>
#include <vector>

#include "describe/ir/rewrite.h"
#include "describe/program/memory.h"
#include "describe/program/overlap.h"
#include "describe/program/verify_parts.h"

namespace systole {
namespace {

constexpr int kForever = 1 << 30;

struct Held {
  Location place;
  std::int64_t size;
  std::string what;
  int last = kForever;  // the last node that reads it
  ValueId storage;      // of a value; invalid for workspaces and for blocks of an outer graph

  bool meets(const Held& other) const {
    if (place.kind != other.place.kind) return false;
    if (place.kind != Location::Kind::scratch) return place.index == other.place.index;
    return place.offset < other.place.offset + other.size && other.place.offset < place.offset + size;
  }
};

class ScratchChecker {
 public:
  ScratchChecker(const Program& program, const Function& function) : program_(program), function_(function) {}

  void run() { walk(function_.graph, function_.placement, function_.donated, {}); }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }

  Held held(const Graph& graph, const Placement& placement, ValueId id, int last) const {
    const std::string name = graph.value_name(id).empty() ? fmt::format("%{}", id.index) : graph.value_name(id);
    return {placement.values[index(id)], graph.type(id).bytes().count(), fmt::format("{} of '{}'", name, graph.name()),
            last, id};
  }

  [[noreturn]] void overlap(const Held& a, const Held& b) const {
    refuse("function {}: {} is written over {}, which is still needed", function_.name, a.what, b.what);
  }

  void check_bounds(const Graph& graph, const Held& block) const {
    const auto i = static_cast<std::size_t>(block.place.index);
    switch (block.place.kind) {
      case Location::Kind::none: refuse("function {}: {} has no place", function_.name, block.what);
      case Location::Kind::input:
        if (i >= graph.inputs().size() || block.size > graph.type(graph.inputs()[i].value).bytes().count())
          refuse("function {}: {} does not fit into input {}", function_.name, block.what, i);
        return;
      case Location::Kind::output:
        if (i >= graph.outputs().size() || block.size > graph.type(graph.outputs()[i].value).bytes().count())
          refuse("function {}: {} does not fit into output {}", function_.name, block.what, i);
        return;
      case Location::Kind::scratch: break;
    }
    if (block.place.offset < 0 || block.place.offset % program_.target.alignment != 0 ||
        block.place.offset + block.size > function_.scratch.count()) {
      refuse("function {}: {} lies at {}, {} bytes, in a scratch of {}", function_.name, block.what, block.place.offset,
             block.size, function_.scratch.count());
    }
  }

  std::vector<int> last_reads(const Graph& graph) const {
    std::vector<int> last = last_uses(graph);
    for (const GraphOutput& output : graph.outputs()) last[index(storage_of(graph, output.value))] = kForever;
    return last;
  }

  void check_ends(const Graph& graph, const Placement& placement) const {
    if (placement.values.size() != static_cast<std::size_t>(graph.num_values()) ||
        placement.nodes.size() != graph.nodes().size())
      refuse("function {}: places for {} values of '{}', which has {}", function_.name, placement.values.size(),
             graph.name(), graph.num_values());
    const auto expect = [&](ValueId id, Location::Kind kind, std::size_t i) {
      if (!(placement.values[index(id)] == Location{kind, static_cast<int>(i), 0}))
        refuse("function {}: input or output {} of '{}' has another place", function_.name, i, graph.name());
    };
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) expect(graph.inputs()[i].value, Location::Kind::input, i);
    for (std::size_t o = 0; o < graph.outputs().size(); ++o)
      expect(storage_of(graph, graph.outputs()[o].value), Location::Kind::output, o);
  }

  // `outer`: live scratch blocks of the graphs around this one.
  void walk(const Graph& graph, const Placement& placement, const std::vector<bool>& donated,
            const std::vector<Held>& outer) const {
    check_ends(graph, placement);
    const std::vector<int> last = last_reads(graph);
    std::vector<Held> live;
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const ValueId id = graph.inputs()[i].value;
      live.push_back(held(graph, placement, id, i < donated.size() && donated[i] ? last[index(id)] : kForever));
    }
    hold_twins(graph, placement, outer, live);
    for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
      const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
      if (node.op->view) {
        if (!(placement.values[index(node.results[0])] == placement.values[index(node.operands[0])]))
          refuse("function {}: a view of '{}' lies elsewhere than what it shows", function_.name, graph.name());
        continue;
      }
      std::erase_if(live, [&](const Held& h) { return h.last < n; });
      std::vector<Held> results = results_of(graph, placement, n, last);
      for (std::size_t r = 0; r < results.size(); ++r) {
        check_bounds(graph, results[r]);
        for (std::size_t q = 0; q < r; ++q) {
          if (results[r].meets(results[q])) overlap(results[r], results[q]);
        }
        for (const Held& h : outer) {
          if (results[r].meets(h)) overlap(results[r], h);
        }
        for (const Held& h : live) {
          if (results[r].meets(h) && !may_replace(graph, node, static_cast<int>(r), n, results[r], h))
            overlap(results[r], h);
        }
      }
      check_inner(graph, placement, n, live, results, outer);
      live.insert(live.end(), results.begin(), results.end());
    }
  }

  // Both buffers of a prefetched value are live from the first iteration to the last.
  void hold_twins(const Graph& graph, const Placement& placement, const std::vector<Held>& outer,
                  std::vector<Held>& live) const {
    for (const GraphNode& node : graph.nodes()) {
      for (const ValueId id : node.results) {
        if (node.op->view || !has_twin(graph, id)) continue;
        Held both = held(graph, placement, id, kForever);
        both.size += twin_stride(Bytes(both.size));
        check_bounds(graph, both);
        for (const std::vector<Held>* list : {&outer, static_cast<const std::vector<Held>*>(&live)}) {
          for (const Held& h : *list) {
            if (both.meets(h)) overlap(both, h);
          }
        }
        live.push_back(std::move(both));
      }
    }
  }

  std::vector<Held> results_of(const Graph& graph, const Placement& placement, int n,
                               const std::vector<int>& last) const {
    std::vector<Held> results;
    for (const ValueId id : graph.nodes()[static_cast<std::size_t>(n)].results) {
      if (!has_twin(graph, id)) results.push_back(held(graph, placement, id, std::max(n, last[index(id)])));
    }
    return results;
  }

  static bool may_replace(const Graph& graph, const GraphNode& node, int r, int n, const Held& result, const Held& h) {
    if (!h.storage.valid() || h.last != n || h.size != result.size || !(h.place == result.place)) return false;
    const std::vector<int> allowed = in_place_operands(graph, node, r);
    for (std::size_t o = 0; o < node.operands.size(); ++o) {
      if (storage_of(graph, node.operands[o]) != h.storage) continue;
      if (std::find(allowed.begin(), allowed.end(), static_cast<int>(o)) == allowed.end()) return false;
    }
    return true;
  }

  // A node's workspace, the second buffers of a repeat's carries, and its body overlap with no live block.
  void check_inner(const Graph& graph, const Placement& placement, int n, const std::vector<Held>& live,
                   const std::vector<Held>& results, std::vector<Held> around) const {
    const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
    const Placement::Inner& inner = placement.nodes[static_cast<std::size_t>(n)];
    for (const std::vector<Held>* list : {&live, &results}) {
      for (const Held& h : *list) {
        if (h.place.kind == Location::Kind::scratch) around.push_back({h.place, h.size, h.what, kForever, ValueId()});
      }
    }
    const auto add = [&](const Location& place, std::int64_t size, const char* what) {
      const Held block{place, size, fmt::format("{} of node {} '{}'", what, n, node.op->name), kForever, ValueId()};
      check_bounds(graph, block);
      for (const Held& h : around) {
        if (block.meets(h)) overlap(block, h);
      }
      around.push_back(block);
    };
    const std::map<std::string, Bytes>& table = program_.target.workspace;
    const auto known = table.empty() ? table.end() : table.find(workspace_key(graph, node));
    const Bytes wanted = known == table.end() ? Bytes(0) : known->second;
    if (inner.workspace_bytes < wanted)
      refuse("function {}: node {} '{}' has a workspace of {} bytes, needs {}", function_.name, n, node.op->name,
             inner.workspace_bytes.count(), wanted.count());
    if (inner.workspace_bytes.count() > 0) add(inner.workspace, inner.workspace_bytes.count(), "the workspace");
    if (!is(node, "repeat")) return;
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries"));
    if (inner.regions.size() != 1 || inner.carry_twins.size() != carries)
      refuse("function {}: the repeat {} has no places for its body", function_.name, n);
    for (std::size_t c = 0; c < carries && node.attrs.get_int("count") > 1; ++c)
      add(inner.carry_twins[c], graph.type(node.results[c]).bytes().count(), "the twin of a carry");
    walk(node.regions[0], inner.regions[0], {}, around);
  }

  const Program& program_;
  const Function& function_;
};

}  // namespace

void verify_scratch(const Program& program, const Function& function) { ScratchChecker(program, function).run(); }

}  // namespace systole
