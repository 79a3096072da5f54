#include "describe/partition/chunks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "describe/ir/layer_names.h"
#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

// The iterations of a repeat that belong to one chunk.
struct Piece {
  int chunk;
  std::int64_t first, count;
};

// A value of the model. The carries of a repeat have one value per piece.
struct Ref {
  int value;
  int piece;  // of a carry; otherwise 0
  auto operator<=>(const Ref&) const = default;
};

bool converts_only(const GraphNode& node) {
  return is(node, "cast") || is(node, "copy") || is(node, "transpose") || is(node, "reshape") || is(node, "broadcast");
}

class Cutter {
 public:
  Cutter(const Graph& graph, std::span<const std::int64_t> layers)
      : graph_(graph), num_chunks_(static_cast<int>(layers.size())), pieces_(graph.nodes().size()) {
    place_pieces(layers);
    place_nodes();
    find_readers();
  }

  std::vector<Chunk> run() {
    std::vector<Chunk> chunks;
    for (int c = 0; c < num_chunks_; ++c) chunks.push_back(build(c));
    return chunks;
  }

 private:
  // Where a node runs, if not in a given chunk: in the first chunk that reads it, or in each.
  static constexpr int kFirstReader = -1, kEachReader = -2;

  const GraphNode& node(std::size_t n) const { return graph_.nodes()[n]; }
  const GraphInput* input_of(ValueId id) const {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.value == id) return &input;
    }
    return nullptr;
  }

  void place_pieces(std::span<const std::int64_t> layers) {
    const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    if (layers.empty() || std::any_of(layers.begin(), layers.end(), [](auto n) { return n < 1; }))
      fail(error(ErrorKind::invalid, "every chunk of a pipeline needs a layer"));
    if (sum != num_layers(graph_))
      fail(error(ErrorKind::invalid, "{} layers in the chunks of a pipeline; '{}' has {}", sum, graph_.name(),
                 num_layers(graph_)));
    int chunk = 0;
    std::int64_t left = layers[0];  // in the chunk
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (!is(node(n), "repeat")) continue;
      const std::int64_t count = node(n).attrs.get_int("count");
      for (std::int64_t at = 0; at < count;) {
        if (left == 0) left = layers[static_cast<std::size_t>(++chunk)];
        const std::int64_t taken = std::min(left, count - at);
        pieces_[n].push_back({chunk, at, taken});
        at += taken;
        left -= taken;
      }
    }
  }

  int last_piece(ValueId id) const {
    const NodeId made = graph_.producer(id);
    return made.valid() && is(graph_.node(made), "repeat")
               ? static_cast<int>(pieces_[static_cast<std::size_t>(made.index)].size()) - 1
               : 0;
  }
  Ref final_of(ValueId id) const { return {id.index, last_piece(id)}; }
  int chunk_of(Ref ref) const {
    const NodeId made = graph_.producer(ValueId{ref.value});
    if (!made.valid()) return kEachReader;
    const auto n = static_cast<std::size_t>(made.index);
    return is(node(n), "repeat") ? pieces_[n][static_cast<std::size_t>(ref.piece)].chunk : place_[n];
  }

  void place_nodes() {
    place_.assign(graph_.nodes().size(), kEachReader);
    std::set<ValueId> converted;  // parameters, and conversions of parameters
    for (const GraphInput& input : graph_.inputs()) {
      if (input.parameter) converted.insert(input.value);
    }
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      int latest = kEachReader;
      bool of_parameters = false;
      for (const ValueId id : node(n).operands) {
        latest = std::max(latest, chunk_of(final_of(id)));
        of_parameters = of_parameters || converted.contains(id);
      }
      if (is(node(n), "repeat")) {
        check_repeat(n, latest);
        place_[n] = pieces_[n].back().chunk;
      } else if (latest != kEachReader || !of_parameters) {
        place_[n] = latest;
      } else if (converts_only(node(n))) {
        converted.insert(node(n).results[0]);
      } else {
        place_[n] = kFirstReader;
      }
    }
  }

  void check_repeat(std::size_t n, int latest) const {
    const GraphNode& repeat = node(n);
    const auto carries = static_cast<std::size_t>(repeat.attrs.get_int("carries"));
    if (latest > pieces_[n].front().chunk)
      fail(error(ErrorKind::unsupported, "'{}' cannot be cut: a repeat begins before what it reads", graph_.name()));
    std::set<ValueId> stacks(repeat.results.begin() + static_cast<std::ptrdiff_t>(carries), repeat.results.end());
    const auto read = [&](ValueId id) { return stacks.contains(id); };
    bool any = std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                           [&](const GraphOutput& output) { return read(output.value); });
    for (const GraphNode& other : graph_.nodes())
      any = any || std::any_of(other.operands.begin(), other.operands.end(), read);
    if (any && pieces_[n].size() > 1)
      fail(error(ErrorKind::unsupported, "'{}' cannot be cut into chunks: what its layers stack is read later",
                 graph_.name()));
  }

  // Sets the chunk of each kFirstReader node, and the first and last reader of each value.
  void find_readers() {
    for (const GraphOutput& output : graph_.outputs()) reads(final_of(output.value), num_chunks_ - 1);
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
      if (is(node(n), "repeat")) {
        const auto carries = static_cast<std::size_t>(node(n).attrs.get_int("carries"));
        for (std::size_t i = 0; i < node(n).operands.size(); ++i) {
          for (std::size_t p = 0; p < pieces_[n].size(); ++p) {
            const bool carried = i < carries && p > 0;
            reads(carried ? Ref{node(n).results[i].index, static_cast<int>(p) - 1} : final_of(node(n).operands[i]),
                  pieces_[n][p].chunk);
          }
        }
        continue;
      }
      if (place_[n] == kEachReader) continue;  // reads only inputs and other such nodes
      if (place_[n] == kFirstReader) place_[n] = first_reader(n);
      for (const ValueId id : node(n).operands) reads(final_of(id), place_[n]);
    }
  }
  int first_reader(std::size_t n) const {
    int first = num_chunks_ - 1;
    for (const ValueId id : node(n).results) {
      const auto at = readers_.find({id.index, 0});
      if (at != readers_.end()) first = std::min(first, at->second.first);
    }
    return first;
  }
  void reads(Ref ref, int chunk) {
    auto [at, is_new] = readers_.try_emplace(ref, chunk, chunk);
    at->second.first = std::min(at->second.first, chunk);
    at->second.second = std::max(at->second.second, chunk);
  }

  // The values that pass from `chunk` to the next, in the model's order.
  std::vector<Ref> handed_on(int chunk) const {
    std::vector<Ref> refs;
    for (const auto& [ref, readers] : readers_) {
      const int made = chunk_of(ref);
      if (made >= 0 && made <= chunk && readers.second > chunk) refs.push_back(ref);
    }
    return refs;
  }
  static std::string between(int chunk, std::size_t k) { return fmt::format("between.{}.{}", chunk, k); }

  // --- one chunk

  struct Building {
    Graph graph;
    int chunk = 0;
    std::map<Ref, Value> values;
  };

  Chunk build(int chunk) {
    Building b{Graph(num_chunks_ == 1 ? graph_.name() : fmt::format("{}.{}", graph_.name(), chunk)), chunk, {}};
    const std::vector<Ref> before = chunk == 0 ? std::vector<Ref>() : handed_on(chunk - 1);
    for (std::size_t k = 0; k < before.size(); ++k) {
      b.values[before[k]] = b.graph.input(between(chunk - 1, k), graph_.type(ValueId{before[k].value}));
      b.values[before[k]].named(graph_.value_name(ValueId{before[k].value}));
    }
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (is(node(n), "repeat")) {
        for (std::size_t p = 0; p < pieces_[n].size(); ++p) {
          if (pieces_[n][p].chunk == chunk) build_piece(b, n, p);
        }
      } else if (place_[n] == chunk) {
        build_node(b, n);
      }
    }
    if (chunk == num_chunks_ - 1) {
      for (const GraphOutput& output : graph_.outputs()) b.graph.output(output.name, get(b, final_of(output.value)));
    } else {
      const std::vector<Ref> next = handed_on(chunk);
      for (std::size_t k = 0; k < next.size(); ++k) b.graph.output(between(chunk, k), get(b, next[k]));
    }
    return {in_model_order(b.graph, static_cast<int>(before.size())), static_cast<int>(before.size())};
  }

  Value get(Building& b, Ref ref) {
    const auto found = b.values.find(ref);
    if (found != b.values.end()) return found->second;
    const ValueId id{ref.value};
    CHECK(chunk_of(ref) == kEachReader, "chunk {} of '{}' reads what it has not", b.chunk, graph_.name());
    if (const GraphInput* input = input_of(id)) {
      if (input->parameter && layer_name(input->name))
        fail(error(ErrorKind::unsupported, "'{}' cannot be cut: '{}' is not read layer by layer", graph_.name(),
                   input->name));
      return b.values[ref] =
                 input->parameter ? b.graph.parameter(*input->parameter) : b.graph.input(input->name, graph_.type(id));
    }
    build_node(b, static_cast<std::size_t>(graph_.producer(id).index));
    return b.values.at(ref);
  }

  void build_node(Building& b, std::size_t n) {
    std::vector<Value> operands;
    for (const ValueId id : node(n).operands) operands.push_back(get(b, final_of(id)));
    set_results(b, n, 0, copy_node(b.graph, node(n), operands));
  }

  void set_results(Building& b, std::size_t n, int piece, const std::vector<Value>& results) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      b.values[{node(n).results[r].index, piece}] = results[r];
      if (const std::string& name = graph_.value_name(node(n).results[r]); !name.empty()) results[r].named(name);
    }
  }

  void build_piece(Building& b, std::size_t n, std::size_t p) {
    const Piece& piece = pieces_[n][p];
    const Attrs& attrs = node(n).attrs;
    const auto carries = static_cast<std::size_t>(attrs.get_int("carries"));
    const auto stacked = static_cast<std::size_t>(attrs.get_int("stacked"));
    const bool reverse = attrs.get_bool("reverse");
    const std::int64_t begin = reverse ? attrs.get_int("count") - piece.first - piece.count : piece.first;
    std::vector<Value> operands;
    for (std::size_t i = 0; i < node(n).operands.size(); ++i) {
      if (i < carries && p > 0) {
        operands.push_back(get(b, {node(n).results[i].index, static_cast<int>(p) - 1}));
      } else if (i >= carries && i < carries + stacked) {
        operands.push_back(layers_of(b, node(n).operands[i], begin, piece.count));
      } else {
        operands.push_back(get(b, final_of(node(n).operands[i])));
      }
    }
    GraphNode part{node(n).op, attrs, {}, {}, node(n).regions, node(n).recomputed};
    part.attrs.set("count", piece.count);
    set_results(b, n, static_cast<int>(p), move_node(b.graph, std::move(part), operands));
  }

  // Slices [begin, begin + count) of a stack.
  Value layers_of(Building& b, ValueId id, std::int64_t begin, std::int64_t count) {
    const bool all = count == graph_.type(id).size(0);
    const GraphInput* input = input_of(id);
    if (input == nullptr || !input->parameter) {
      const Value whole = get(b, final_of(id));
      return all ? whole : slice_dim(whole, 0, begin, begin + count);
    }
    const std::optional<LayerName> name = layer_name(input->name);
    if (!name)
      fail(error(ErrorKind::unsupported, "'{}' cannot be cut: '{}' has no '{{layer}}'", graph_.name(), input->name));
    Parameter part = *input->parameter;
    part.name = name->from(name->first + name->step * begin);
    part.type.shape[0] = count;
    if (const auto there = b.graph.find_input(part.name)) return b.graph.input_named(part.name);
    place_of_input_[part.name] = input->value.index;
    return b.graph.parameter(std::move(part));
  }

  // Inputs in the model's order, then those from the chunk before.
  Graph in_model_order(const Graph& built, int from_before) const {
    const auto place = [&](std::size_t i) {
      if (static_cast<int>(i) < from_before) return graph_.num_values() + static_cast<int>(i);
      const std::string& name = built.inputs()[i].name;
      const auto part = place_of_input_.find(name);
      if (part != place_of_input_.end()) return part->second;
      return graph_.inputs()[static_cast<std::size_t>(*graph_.find_input(name))].value.index;
    };
    std::vector<std::size_t> order(built.inputs().size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    Graph graph(built.name());
    std::vector<Value> inputs(order.size());
    for (const std::size_t i : order) {
      const GraphInput& input = built.inputs()[i];
      inputs[i] =
          input.parameter ? graph.parameter(*input.parameter) : graph.input(input.name, built.type(input.value));
      const std::string& name = built.value_name(input.value);
      if (!name.empty() && graph.value_name(inputs[i].id).empty()) inputs[i].named(name);
    }
    const std::vector<Value> outputs = inline_graph(graph, built, inputs);
    for (std::size_t o = 0; o < outputs.size(); ++o) graph.output(built.outputs()[o].name, outputs[o]);
    return graph;
  }

  const Graph& graph_;
  const int num_chunks_;
  std::vector<std::vector<Piece>> pieces_;      // per node; empty except for repeats
  std::vector<int> place_;                      // per node: a chunk, kFirstReader or kEachReader
  std::map<Ref, std::pair<int, int>> readers_;  // the first and the last chunk that reads the value
  std::map<std::string, int> place_of_input_;   // of a parameter's slice: the parameter's place in the model
};

}  // namespace

bool is_between(std::string_view name) { return name.starts_with("between."); }

std::vector<std::int64_t> layers_of_repeats(const Graph& graph) {
  std::vector<std::int64_t> layers;
  for (const GraphNode& node : graph.nodes())
    if (is(node, "repeat")) layers.push_back(node.attrs.get_int("count"));
  return layers;
}

std::int64_t num_layers(const Graph& graph) {
  const std::vector<std::int64_t> layers = layers_of_repeats(graph);
  return std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
}

std::vector<Chunk> cut_into_chunks(const Graph& graph, std::span<const std::int64_t> layers) {
  return Cutter(graph, layers).run();
}

}  // namespace systole
