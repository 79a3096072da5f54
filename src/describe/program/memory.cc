#include "describe/program/memory.h"

#include <algorithm>
#include <numeric>

#include "describe/ir/rewrite.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

using Lives = std::vector<std::pair<int, int>>;

// Sorted and merged: intervals do not touch.
Lives in_turn(Lives lives) {
  std::ranges::sort(lives);
  Lives merged;
  for (const auto& [from, to] : lives) {
    if (!merged.empty() && from <= merged.back().second)
      merged.back().second = std::max(merged.back().second, to);
    else
      merged.emplace_back(from, to);
  }
  return merged;
}

// REQUIRES: both come from in_turn.
bool overlap(const Lives& a, const Lives& b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i].first <= b[j].second && b[j].first <= a[i].second) return true;
    ++(a[i].second < b[j].second ? i : j);
  }
  return false;
}

bool read_through_broadcast(const Graph& chain, ValueId input) {
  return std::any_of(chain.nodes().begin(), chain.nodes().end(),
                     [&](const GraphNode& node) { return is(node, "broadcast") && node.operands[0] == input; });
}

// Time is the order of nodes; the times of a body's nodes lie inside those of its repeat.
class Planner {
 public:
  Planner(Function& function, std::int64_t alignment, const WorkspaceOf& workspace_of)
      : function_(function), alignment_(alignment), workspace_of_(workspace_of) {}

  void run() {
    plan_graph(function_.graph, function_.placement, function_.donated);
    function_.scratch = place_blocks(blocks_, alignment_);
    for (const auto& [location, block] : pending_) {
      if (location->kind == Location::Kind::scratch) location->offset = blocks_[static_cast<std::size_t>(block)].offset;
    }
    measure_peak();
  }

 private:
  // The place of a value: an input or output of its graph, or a block.
  struct Place {
    Location location;
    int block = -1;
  };

  // A collective in flight: its operand and workspace stay alive until the first reader of its result.
  struct Flight {
    int reader;
    ValueId operand;
    int workspace;  // block
  };

  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }

  int add_block(Bytes size, int from, int to, bool workspace = false) {
    blocks_.push_back({size, {{from, to}}});
    is_workspace_.push_back(workspace);
    return static_cast<int>(blocks_.size()) - 1;
  }

  void extend(int block, int to) {
    if (block >= 0)
      blocks_[static_cast<std::size_t>(block)].lives[0].second =
          std::max(blocks_[static_cast<std::size_t>(block)].lives[0].second, to);
  }

  // Assigns a time span to every node of the graph; spans of bodies nest.
  void plan_graph(const Graph& graph, Placement& placement, const std::vector<bool>& donated) {
    placement.values.assign(static_cast<std::size_t>(graph.num_values()), {});
    placement.nodes.assign(graph.nodes().size(), {});
    std::vector<Place> places(placement.values.size());
    const std::vector<int> last_node = last_uses(graph);
    const int begin = time_;
    std::vector<int> of_body;     // blocks that live across iterations, so as long as the body
    std::vector<Flight> flights;  // collectives in flight
    std::vector<bool> given(placement.values.size(), false);  // outputs, which the caller places
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const ValueId id = graph.inputs()[i].value;
      places[index(id)].location = {Location::Kind::input, static_cast<int>(i), 0};
    }
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const ValueId id = storage_of(graph, graph.outputs()[i].value);
      CHECK(graph.producer(id).valid() && !given[index(id)], "output '{}' of '{}' has no node of its own",
            graph.outputs()[i].name, graph.name());
      given[index(id)] = true;
      places[index(id)].location = {Location::Kind::output, static_cast<int>(i), 0};
    }
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const GraphNode& node = graph.nodes()[n];
      Placement::Inner& inner = placement.nodes[n];
      const int start = time_++;
      if (!node.op->view) {
        if (is(node, "repeat")) plan_repeat(node, graph, inner);
        const Bytes workspace = workspace_of_(graph, node);
        int block = -1;
        if (workspace.count() > 0) {
          inner.workspace_bytes = workspace;
          inner.workspace.kind = Location::Kind::scratch;
          block = add_block(workspace, start, start, true);
          pending_.emplace_back(&inner.workspace, block);
        }
        if (overlap_of(node) == Overlap::reader)
          flights.push_back({first_reader(graph, static_cast<int>(n)), storage_of(graph, node.operands[0]), block});
        if (overlap_of(node) == Overlap::ahead && block >= 0) of_body.push_back(block);
      }
      const int end = time_ - 1;
      for (const ValueId id : node.operands) extend(places[index(storage_of(graph, id))].block, end);
      for (const Flight& flight : flights) {
        if (flight.reader != static_cast<int>(n)) continue;
        extend(places[index(flight.operand)].block, end);
        extend(flight.workspace, end);
      }
      claimed_.clear();
      for (std::size_t r = 0; r < node.results.size(); ++r) {
        const ValueId id = node.results[r];
        Place& place = places[index(id)];
        if (node.op->view) {
          place = places[index(node.operands[0])];
        } else if (has_twin(graph, id)) {
          CHECK(kTwinAlignment % alignment_ == 0, "twins at an alignment of {}", alignment_);
          place.location.kind = Location::Kind::scratch;
          place.block = add_block(Bytes(2 * twin_stride(graph.type(id).bytes())), start, end);
          of_body.push_back(place.block);
        } else if (!given[index(id)]) {
          place = result_place(graph, node, static_cast<int>(r), static_cast<int>(n), start, end, places, last_node,
                               donated);
        }
      }
    }
    for (const Flight& flight : flights) {
      if (flight.reader < static_cast<int>(graph.nodes().size())) continue;
      of_body.push_back(places[index(flight.operand)].block);
      of_body.push_back(flight.workspace);
    }
    for (const int block : of_body) {
      if (block < 0) continue;
      auto& lives = blocks_[static_cast<std::size_t>(block)].lives[0];
      lives = {std::min(lives.first, begin), std::max(lives.second, time_ - 1)};
    }
    for (std::size_t v = 0; v < places.size(); ++v) {
      placement.values[v] = places[v].location;
      if (places[v].location.kind == Location::Kind::scratch)
        pending_.emplace_back(&placement.values[v], places[v].block);
    }
  }

  // The place of an operand at its last use where the op works in place; otherwise a new block.
  Place result_place(const Graph& graph, const GraphNode& node, int r, int n, int start, int end,
                     const std::vector<Place>& places, const std::vector<int>& last_node,
                     const std::vector<bool>& donated) {
    for (const int o : in_place_operands(graph, node, r)) {
      const ValueId storage = storage_of(graph, node.operands[static_cast<std::size_t>(o)]);
      const Place& operand = places[index(storage)];
      if (last_node[index(storage)] != n || has_twin(graph, storage) ||
          graph.type(storage).bytes() != graph.type(node.results[static_cast<std::size_t>(r)]).bytes())
        continue;
      const bool mine = operand.location.kind == Location::Kind::scratch ||
                        (operand.location.kind == Location::Kind::input &&
                         static_cast<std::size_t>(operand.location.index) < donated.size() &&
                         donated[static_cast<std::size_t>(operand.location.index)]);
      const auto claimed = [&](const Place& other) {
        return other.block == operand.block && other.location == operand.location;
      };
      if (!mine || std::any_of(claimed_.begin(), claimed_.end(), claimed)) continue;
      claimed_.push_back(operand);
      extend(operand.block, end);
      return operand;
    }
    Place place;
    place.location.kind = Location::Kind::scratch;
    place.block = add_block(graph.type(node.results[static_cast<std::size_t>(r)]).bytes(), start, end);
    return place;
  }

  void plan_repeat(const GraphNode& node, const Graph& graph, Placement::Inner& inner) {
    const int start = time_;
    inner.regions.resize(1);
    plan_graph(node.regions[0], inner.regions[0], {});
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries"));
    inner.carry_twins.resize(carries);
    if (node.attrs.get_int("count") < 2) return;
    for (std::size_t c = 0; c < carries; ++c) {
      inner.carry_twins[c].kind = Location::Kind::scratch;
      pending_.emplace_back(&inner.carry_twins[c],
                            add_block(graph.type(node.results[c]).bytes(), start - 1, time_ - 1));
    }
  }

  // Peak of live bytes, split by kind: a lower bound on the scratch.
  void measure_peak() {
    Bytes most(-1);
    for (int t = 0; t < time_; ++t) {
      Bytes activation, workspace;
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const auto& [from, to] = blocks_[b].lives[0];
        if (from <= t && t <= to) (is_workspace_[b] ? workspace : activation) += blocks_[b].size;
      }
      if (activation + workspace > most) {
        most = activation + workspace;
        function_.activations = activation;
        function_.workspace = workspace;
      }
    }
  }

  Function& function_;
  std::int64_t alignment_;
  const WorkspaceOf& workspace_of_;
  int time_ = 0;
  std::vector<Block> blocks_;
  std::vector<bool> is_workspace_;
  std::vector<std::pair<Location*, int>> pending_;  // locations that wait for their block's offset
  std::vector<Place> claimed_;                      // places that results of the current node have taken
};

}  // namespace

std::int64_t aligned(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::vector<int> in_place_operands(const Graph& graph, const GraphNode& node, int result) {
  std::vector<int> operands;
  const auto size_matches = [&](int o) {
    return graph.type(node.operands[static_cast<std::size_t>(o)]).bytes() ==
           graph.type(node.results[static_cast<std::size_t>(result)]).bytes();
  };
  if (is(node, "fusion")) {
    const Graph& chain = node.regions[0];
    for (int o = 0; o < static_cast<int>(node.operands.size()); ++o) {
      const ValueId input = chain.inputs()[static_cast<std::size_t>(o)].value;
      if (size_matches(o) && !read_through_broadcast(chain, input)) operands.push_back(o);
    }
    return operands;
  }
  for (const InPlace& pair : node.op->in_place) {
    if (pair.result == result && pair.operand < static_cast<int>(node.operands.size()) && size_matches(pair.operand))
      operands.push_back(pair.operand);
  }
  return operands;
}

Bytes place_blocks(std::vector<Block>& blocks, std::int64_t alignment) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].size > blocks[b].size; });
  std::vector<Lives> lives;
  for (const Block& block : blocks) lives.push_back(in_turn(block.lives));
  std::vector<std::size_t> placed;  // by offset
  std::int64_t end = 0;
  for (const std::size_t b : order) {
    Block& block = blocks[b];
    const std::int64_t size = aligned(block.size.count(), alignment);
    std::int64_t at = 0, best = -1, best_gap = 0;
    for (const std::size_t p : placed) {
      const Block& other = blocks[p];
      if (!overlap(lives[b], lives[p])) continue;
      if (const std::int64_t gap = other.offset - at; gap >= size && (best < 0 || gap < best_gap)) {
        best = at;
        best_gap = gap;
      }
      at = std::max(at, other.offset + aligned(other.size.count(), alignment));
    }
    block.offset = best >= 0 ? best : at;
    end = std::max(end, block.offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), b,
                                   [&](std::size_t x, std::size_t y) { return blocks[x].offset < blocks[y].offset; }),
                  b);
  }
  return Bytes(end);
}

void plan_scratch(Function& function, std::int64_t alignment, const WorkspaceOf& workspace_of) {
  Planner(function, alignment, workspace_of).run();
}

}  // namespace systole
