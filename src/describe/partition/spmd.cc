#include "describe/partition/spmd.h"

#include <algorithm>
#include <array>

#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/partition/moves.h"
#include "describe/partition/scatter_sums.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

// A value of the whole graph on one device.
struct Piece {
  Value value;
  const Type* whole = nullptr;  // type in the whole graph
  Layout layout;
  bool stays = false;          // a parameter, or a conversion of one
  std::optional<Layout> used;  // of a stored shard: the layout that readers other than casts get
  std::vector<std::pair<Layout, Value>> others;
};

bool only_converts(const GraphNode& node) { return is(node, "cast") || is(node, "copy"); }
bool still_parameter(const GraphNode& node) {
  return only_converts(node) || is(node, "transpose") || is(node, "reshape");
}

// Partitions one graph or body.
class Scope {
 public:
  Scope(const SpmdRequest& request, const Graph& from, Graph& to)
      : request_(request), mesh_(request.mesh), from_(from), to_(to) {
    pieces_.resize(static_cast<std::size_t>(from.num_values()));
  }

  void set(ValueId id, Piece piece) {
    CHECK(piece.value.type() == local_type(*piece.whole, piece.layout, mesh_), "a piece of {} as {} is {}",
          to_string(*piece.whole), to_string(piece.layout, piece.whole->ndim(), mesh_), to_string(piece.value.type()));
    if (!from_.value_name(id).empty() && to_.value_name(piece.value.id).empty())
      to_.set_value_name(piece.value.id, from_.value_name(id));
    pieces_[static_cast<std::size_t>(id.index)] = std::move(piece);
  }
  void want(ValueId id, const Layout& layout) { wanted_.emplace(id.index, layout); }

  void run() {
    for (const GraphNode& node : from_.nodes()) {
      if (is(node, "repeat")) {
        repeat(node);
      } else {
        one(node);
      }
    }
  }

  Piece& piece(ValueId id) { return pieces_[static_cast<std::size_t>(id.index)]; }

  // The value in `layout`; built once.
  Value as(ValueId id, const Layout& layout) {
    Piece& p = piece(id);
    if (p.layout == layout) return p.value;
    for (const auto& [other, value] : p.others) {
      if (other == layout) return value;
    }
    const Value made = build_moves(p.value, moves_between(*p.whole, p.layout, layout, mesh_), mesh_,
                                   [&](int axis) { return coordinate(axis); });
    p.others.emplace_back(layout, made);
    return made;
  }

  // Reduces scalars that are partial sums on the same axes in one message.
  void sum_together(std::span<const ValueId> numbers) {
    const Piece& first = piece(numbers[0]);
    const Layout whole = Layout::whole(mesh_);
    const Type type(first.value.dtype(), {}), one(first.value.dtype(), {1});
    std::vector<Value> terms;
    for (const ValueId id : numbers) terms.push_back(reshape(piece(id).value, one));
    const Value all = concatenate(terms, 0);
    const Value sums = build_moves(all, moves_between(all.type(), first.layout, whole, mesh_), mesh_, nullptr);
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      piece(numbers[k]).others.emplace_back(whole, reshape(slice_dim(sums, 0, at, at + 1), type));
    }
  }

  // The layout of the value once it is reduced: one that a reader already has, or replicated.
  Layout summed(ValueId id) {
    const Piece& p = piece(id);
    if (!p.layout.partial()) return p.layout;
    for (const auto& [layout, value] : p.others) {
      if (!layout.partial()) return layout;
    }
    Layout layout = p.layout;
    for (int& dim : layout.at) {
      if (dim == Layout::kPartial) dim = Layout::kWhole;
    }
    return layout;
  }

  Value coordinate(int axis) {
    auto [at, is_new] = coordinates_.try_emplace(axis);
    if (is_new)
      at->second = to_.input(coordinate_name(mesh_.axes()[static_cast<std::size_t>(axis)].name), Type(DType::i64, {}));
    return at->second;
  }
  std::vector<int> coordinates() const {  // in the order of the inputs
    std::vector<std::pair<int, int>> order;
    for (const auto& [axis, value] : coordinates_) order.emplace_back(value.id.index, axis);
    std::sort(order.begin(), order.end());
    std::vector<int> axes;
    for (const auto& [value, axis] : order) axes.push_back(axis);
    return axes;
  }

 private:
  // The layout that an op reads: stored shards are gathered, unless the op only converts.
  Layout read_as(const GraphNode& node, const Piece& p) const {
    return p.used && !only_converts(node) ? *p.used : p.layout;
  }

  PreferredLayout preferred_layout(ValueId id) const {
    const auto found = wanted_.find(id.index);
    return found != wanted_.end() ? found->second : preferred_by_names(from_.type(id), request_.rules, mesh_);
  }

  void one(const GraphNode& node) {
    std::vector<PlacedOperand> operands;
    std::vector<Type> operand_types, result_types;
    std::vector<PreferredLayout> preferred;
    for (const ValueId id : node.operands) {
      const Piece& p = piece(id);
      operands.push_back({p.whole, read_as(node, p), p.stays});
      for (const auto& [layout, value] : p.others) operands.back().also.push_back(layout);
      operand_types.push_back(*p.whole);
    }
    for (const ValueId id : node.results) {
      result_types.push_back(from_.type(id));
      preferred.push_back(preferred_layout(id));
    }
    const OpCall call{*node.op, node.attrs, operand_types, node.regions};
    const Choice choice = choose(call, result_types, operands, preferred, mesh_, request_.fill);
    std::vector<Value> inputs;
    std::vector<Type> local_operands, local_results;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (piece(node.operands[i]).used && !only_converts(node)) as(node.operands[i], operands[i].layout);
      inputs.push_back(as(node.operands[i], choice.operands[i]));
      local_operands.push_back(inputs.back().type());
    }
    for (std::size_t r = 0; r < result_types.size(); ++r)
      local_results.push_back(local_type(result_types[r], choice.results[r], mesh_));
    const Attrs attrs = node.op->local_attrs ? node.op->local_attrs(node.attrs, local_results) : node.attrs;
    std::vector<Value> results;
    if (choice.local_factor < 0) {
      results = to_.apply(*node.op, inputs, attrs);
      to_.last_node().recomputed = node.recomputed;
    } else {
      results = rewritten(OpCall{*node.op, attrs, local_operands, {}}, call, local_results, choice, inputs);
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      Piece made{results[r], &from_.type(node.results[r]), choice.results[r], false, std::nullopt, {}};
      if (node.operands.size() == 1 && still_parameter(node)) {
        const Piece& p = piece(node.operands[0]);
        made.stays = p.stays;
        if (only_converts(node)) made.used = p.used;
      }
      set(node.results[r], std::move(made));
    }
  }

  // The op's local rewrite: a graph that takes the offset of the device's shard of the factor.
  std::vector<Value> rewritten(const OpCall& local, const OpCall& whole, const std::vector<Type>& results,
                               const Choice& choice, std::vector<Value> inputs) {
    const ShardingRule rule = whole.op.sharding(whole);
    std::vector<std::string> axes;
    std::int64_t parts = 1;
    std::optional<Value> index;
    for (std::size_t a = 0; a < mesh_.axes().size(); ++a) {
      if (choice.factor[a] != choice.local_factor) continue;
      const Value here = coordinate(static_cast<int>(a));
      index = index ? add(scale(*index, static_cast<double>(mesh_.axes()[a].size)), here) : here;
      axes.push_back(mesh_.axes()[a].name);
      parts *= mesh_.axes()[a].size;
    }
    const std::int64_t size = local_size(rule, choice.local_factor, local, results);
    inputs.push_back(scale(*index, static_cast<double>(size)));
    const Graph graph =
        whole.op.local_rewrite(local, choice.local_factor, fmt::format("{}", fmt::join(axes, ",")), parts);
    return inline_graph(to_, graph, inputs);
  }

  // The factor's size on one device, from an operand or else a result.
  static std::int64_t local_size(const ShardingRule& rule, int factor, const OpCall& local,
                                 const std::vector<Type>& results) {
    for (std::size_t i = 0; i < rule.operands.size(); ++i) {
      for (std::size_t d = 0; d < rule.operands[i].size(); ++d) {
        if (rule.operands[i][d] == factor) return local.operands[i].shape[d];
      }
    }
    for (std::size_t r = 0; r < rule.results.size(); ++r) {
      for (std::size_t d = 0; d < rule.results[r].size(); ++d) {
        if (rule.results[r][d] == factor) return results[r].shape[d];
      }
    }
    fail(error(ErrorKind::internal, "{}: factor {} is nowhere", local.op.name, factor));
  }

  struct RepeatParts {
    std::size_t carries, stacked;
    explicit RepeatParts(const Attrs& attrs)
        : carries(static_cast<std::size_t>(attrs.get_int("carries"))),
          stacked(static_cast<std::size_t>(attrs.get_int("stacked"))) {}
  };

  // The first guess for a carry. An activation follows its dim names. A sum starts as partial sums on every axis;
  // try_repeat takes that back where the body's result is not partial. A scalar is replicated: as a partial sum, each
  // reader would need another reduction.
  Layout first_carry_layout(ValueId id) {
    const Type& whole = from_.type(id);
    const PreferredLayout names = preferred_by_names(whole, request_.rules, mesh_);
    const bool activation = std::any_of(names.at.begin(), names.at.end(), [](int dim) { return dim >= 0; });
    Layout layout = summed(id);
    for (std::size_t a = 0; a < layout.at.size(); ++a) {
      if (activation) {
        if (names.at[a] != kAnywhere) layout.at[a] = names.at[a];
      } else if (request_.terms && layout.at[a] < 0 && is_float(whole.dtype) && whole.ndim() > 0) {
        layout.at[a] = Layout::kPartial;
      }
    }
    return layout;
  }

  void repeat(const GraphNode& node) {
    const RepeatParts parts(node.attrs);
    std::vector<Layout> carries;
    for (std::size_t i = 0; i < parts.carries; ++i) carries.push_back(first_carry_layout(node.operands[i]));
    while (!try_repeat(node, parts, carries)) {}
  }

  // Returns false and changes `carries` when a carry assumed to be partial sums is not.
  bool try_repeat(const GraphNode& node, const RepeatParts& parts, std::vector<Layout>& carries) {
    const Graph& body = node.regions[0];
    Graph inner(body.name());
    Scope scope(request_, body, inner);
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const Piece& p = piece(node.operands[i]);
      const bool slice = i >= parts.carries && i < parts.carries + parts.stacked;
      Layout here = i < parts.carries ? carries[i] : slice ? p.layout : read_as(node, p);
      layouts.push_back(here);
      if (slice) here = slice_layout(here);
      const GraphInput& input = body.inputs()[i];
      const Type& whole = body.type(input.value);
      Piece made{inner.input(input.name, local_type(whole, here, mesh_)), &whole, here, p.stays, std::nullopt, {}};
      if (slice && p.used) made.used = slice_layout(*p.used);
      scope.set(input.value, std::move(made));
    }
    for (std::size_t r = parts.carries; r < node.results.size(); ++r) {
      const auto wanted = wanted_.find(node.results[r].index);
      if (wanted != wanted_.end()) scope.want(body.outputs()[r].value, slice_layout(wanted->second));
    }
    scope.run();
    if (sums_taken_back(scope, body, carries)) return false;
    std::vector<Layout> results;
    for (std::size_t r = 0; r < body.outputs().size(); ++r) {
      const GraphOutput& output = body.outputs()[r];
      const auto wanted = wanted_.find(node.results[r].index);
      Layout layout = r < parts.carries                ? carries[r]
                      : wanted != wanted_.end()        ? slice_layout(wanted->second)
                      : only_added_up(node.results[r]) ? scope.piece(output.value).layout
                                                       : scope.summed(output.value);
      inner.output(output.name, scope.as(output.value, layout));
      results.push_back(r < parts.carries ? layout : stacked_layout(layout));
    }
    place_repeat(node, scope, std::move(inner), layouts, results);
    return true;
  }

  // Then a stacked output may stay partial sums, since the sum over the layers is linear.
  bool only_added_up(ValueId stack) const {
    if (!request_.terms || std::ranges::any_of(from_.outputs(), [&](const GraphOutput& o) { return o.value == stack; }))
      return false;
    return std::ranges::all_of(from_.nodes(), [&](const GraphNode& reader) {
      return is(reader, "reduce_sum") || std::ranges::find(reader.operands, stack) == reader.operands.end();
    });
  }

  static bool sums_taken_back(Scope& scope, const Graph& body, std::vector<Layout>& carries) {
    bool changed = false;
    for (std::size_t i = 0; i < carries.size(); ++i) {
      const Layout& natural = scope.piece(body.outputs()[i].value).layout;
      for (std::size_t a = 0; a < natural.at.size(); ++a) {
        if (carries[i].at[a] != Layout::kPartial || natural.at[a] == Layout::kPartial) continue;
        carries[i].at[a] = Layout::kWhole;
        changed = true;
      }
    }
    return changed;
  }

  void place_repeat(const GraphNode& node, const Scope& scope, Graph inner, const std::vector<Layout>& operands,
                    const std::vector<Layout>& results) {
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < node.operands.size(); ++i) inputs.push_back(as(node.operands[i], operands[i]));
    for (const int axis : scope.coordinates()) inputs.push_back(coordinate(axis));
    Attrs attrs = node.attrs;
    attrs.set("shared", node.attrs.get_int("shared") + static_cast<std::int64_t>(scope.coordinates().size()));
    std::vector<Graph> regions;
    regions.push_back(std::move(inner));
    const std::vector<Value> made = to_.apply(*node.op, inputs, std::move(attrs), std::move(regions));
    to_.last_node().recomputed = node.recomputed;
    for (std::size_t r = 0; r < made.size(); ++r)
      set(node.results[r], {made[r], &from_.type(node.results[r]), results[r], false, std::nullopt, {}});
  }

  const SpmdRequest& request_;
  const Mesh& mesh_;
  const Graph& from_;
  Graph& to_;
  std::vector<Piece> pieces_;
  std::map<int, Layout> wanted_;      // per value
  std::map<int, Value> coordinates_;  // per axis
};

const Layout* find(const std::map<std::string, Layout>& layouts, const std::string& name) {
  const auto found = layouts.find(name);
  return found == layouts.end() ? nullptr : &found->second;
}

}  // namespace

std::string coordinate_name(const std::string& axis) { return "coordinate." + axis; }

SpmdGraph spmd(const Graph& whole, const SpmdRequest& request) {
  SpmdGraph result{Graph(whole.name()), {}};
  Graph& to = result.graph;
  Scope scope(request, whole, to);
  for (const GraphInput& input : whole.inputs()) {
    const Layout* given = find(request.inputs, input.name);
    const Layout layout = given != nullptr ? *given : Layout::whole(request.mesh);
    const Type& type = whole.type(input.value);
    const Layout* used = find(request.used, input.name);
    const Type local = local_type(type, layout, request.mesh);
    Piece piece{input.parameter ? to.parameter([&] {
                  Parameter parameter = *input.parameter;
                  parameter.type = local;
                  return parameter;
                }())
                                : to.input(input.name, local),
                &type,
                layout,
                input.parameter.has_value(),
                std::nullopt,
                {}};
    if (used != nullptr && !(*used == layout)) piece.used = *used;
    scope.set(input.value, std::move(piece));
  }
  for (const GraphOutput& output : whole.outputs()) {
    if (const Layout* wanted = find(request.outputs, output.name)) scope.want(output.value, *wanted);
  }
  scope.run();
  std::vector<std::vector<ValueId>> numbers;  // scalar outputs to reduce, grouped by layout
  for (const GraphOutput& output : whole.outputs()) {
    const Layout* wanted = find(request.outputs, output.name);
    const Piece& p = scope.piece(output.value);
    if (wanted == nullptr || wanted->partial() || p.whole->ndim() > 0 || !p.layout.partial()) continue;
    if (!p.others.empty()) continue;  // a reader has it reduced
    const auto alike = std::ranges::find_if(numbers, [&](const std::vector<ValueId>& group) {
      const Piece& other = scope.piece(group[0]);
      return other.layout == p.layout && other.value.dtype() == p.value.dtype();
    });
    alike == numbers.end() ? numbers.push_back({output.value}) : alike->push_back(output.value);
  }
  for (const std::vector<ValueId>& group : numbers)
    if (group.size() > 1) scope.sum_together(group);
  for (const GraphOutput& output : whole.outputs()) {
    const Layout* wanted = find(request.outputs, output.name);
    const Layout layout = wanted != nullptr ? *wanted : scope.summed(output.value);
    to.output(output.name, scope.as(output.value, layout));
    result.outputs.emplace(output.name, layout);
  }
  result.graph = drop_dead(scatter_sums(merge_common(result.graph)));
  return result;
}

}  // namespace systole
