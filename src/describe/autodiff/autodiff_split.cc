#include "describe/autodiff/autodiff_split.h"

#include <algorithm>

#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"

namespace systole {

std::vector<bool> dependents(const Graph& graph, const std::vector<bool>& active) {
  std::vector<bool> values(static_cast<std::size_t>(graph.num_values()), false);
  const auto at = [&](ValueId id) { return values[static_cast<std::size_t>(id.index)]; };
  for (std::size_t i = 0; i < active.size(); ++i) {
    const ValueId id = graph.inputs()[i].value;
    at(id) = active[i] && is_float(graph.type(id).dtype);
  }
  for (const GraphNode& node : graph.nodes()) {
    const bool any = std::any_of(node.operands.begin(), node.operands.end(), at);
    for (const ValueId id : node.results) at(id) = any && is_float(graph.type(id).dtype);
  }
  return values;
}

Split split(const Request& request) { return Splitter(request).run(); }

Splitter::Splitter(const Request& request)
    : request_(request),
      graph_(request.graph),
      backward_(graph_.name() + ".backward"),
      cotangent_(static_cast<std::size_t>(graph_.num_values())),
      used_(static_cast<std::size_t>(graph_.num_values())),
      active_(dependents(graph_, request.wanted)) {}

Split Splitter::run() {
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) seed_output(static_cast<int>(i));
  for (int n = static_cast<int>(graph_.nodes().size()); n-- > 0;) backward_node(n);
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const std::optional<Value>& g = cotangent_[index(graph_.inputs()[i].value)];
    result_.gradients.emplace_back();
    if (!request_.wanted[i] || !g) continue;
    result_.gradients.back() = static_cast<int>(backward_.outputs().size());
    backward_.output("gradient." + graph_.inputs()[i].name, *g);
  }
  build_forward();
  result_.num_residuals = static_cast<int>(residuals_.size());
  result_.backward = std::move(backward_);
  return std::move(result_);
}

void Splitter::seed_output(int i) {
  const ValueId id = graph_.outputs()[static_cast<std::size_t>(i)].value;
  if (request_.seed == i) accumulate(id, constant(backward_, graph_.type(id), 1));
  if (!request_.cotangents[static_cast<std::size_t>(i)] || !active_[index(id)]) return;
  result_.sources.push_back({Source::Kind::cotangent, i});
  accumulate(id, backward_.input(fmt::format("cotangent.{}", i), graph_.type(id)));
}

void Splitter::accumulate(ValueId id, Value g) {
  CHECK(g.type() == graph_.type(id), "a gradient {} for {} in '{}'", to_string(g.type()), to_string(graph_.type(id)),
        graph_.name());
  std::optional<Value>& sum = cotangent_[index(id)];
  sum = sum ? add(*sum, g) : g;
}

void Splitter::backward_node(int n) {
  node_ = &graph_.nodes()[static_cast<std::size_t>(n)];
  const auto has = [&](ValueId id) { return cotangent_[index(id)].has_value() && active_[index(id)]; };
  if (std::none_of(node_->results.begin(), node_->results.end(), has)) return;
  if (is(*node_, "repeat")) return backward_repeat(n);
  if (!node_->op->gradient) {
    fail(error(ErrorKind::invalid, "graph '{}': '{}' has no gradient", graph_.name(), node_->op->name)
             .hinted("freeze the parameters in front of it, or take another op"));
  }
  const Gradients gradients = node_->op->gradient(*this);
  CHECK(gradients.size() <= node_->operands.size(), "'{}' gives {} gradients", node_->op->name, gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] && active_[index(node_->operands[i])]) accumulate(node_->operands[i], *gradients[i]);
  }
}

Value Splitter::use(ValueId id) {
  std::optional<Value>& known = used_[index(id)];
  if (!known) known = obtain(id);
  return *known;
}

Value Splitter::obtain(ValueId id) {
  const NodeId producer = graph_.producer(id);
  if (!producer.valid()) {
    const int i = input_index(id);
    if (!request_.available[static_cast<std::size_t>(i)]) return residual({id});
    const GraphInput& input = graph_.inputs()[static_cast<std::size_t>(i)];
    result_.sources.push_back({Source::Kind::input, i});
    return input.parameter ? backward_.parameter(*input.parameter) : backward_.input(input.name, graph_.type(id));
  }
  const GraphNode& node = graph_.node(producer);
  return keeps(id, node) ? residual({id}) : again(id, node);
}

Value Splitter::residual(Residual r) {
  const Type& type = r.node < 0 ? graph_.type(r.value) : further_types_.at(r.node)[static_cast<std::size_t>(r.further)];
  result_.sources.push_back({Source::Kind::residual, static_cast<int>(residuals_.size())});
  const Value value = backward_.input(fmt::format("residual.{}", residuals_.size()), type);
  residuals_.push_back(r);
  return value;
}

Value Splitter::again(ValueId id, const GraphNode& node) {
  std::vector<Value> operands;
  for (const ValueId operand : node.operands) operands.push_back(use(operand));
  std::vector<Value> results;
  if (operands.empty()) {
    results = backward_.apply(*node.op, {}, node.attrs);
  } else {
    results = backward_.apply(*node.op, operands, node.attrs, node.regions);
  }
  backward_.last_node().recomputed = true;
  for (std::size_t i = 0; i < results.size(); ++i) used_[index(node.results[i])] = results[i];
  return *used_[index(id)];
}

bool Splitter::keeps(ValueId id, const GraphNode& node) {
  if (node.op->cheap && cheap_again(node, 0)) return false;
  if (is(node, "repeat")) return true;
  if (!request_.in_block) return true;
  const std::vector<std::string>& names = request_.policy.names;
  switch (request_.policy.kind) {
    case RecomputePolicy::Kind::none: return true;
    case RecomputePolicy::Kind::attention: return node.op->name != std::string_view("attention");
    case RecomputePolicy::Kind::block: return false;
    case RecomputePolicy::Kind::named:
      return std::find(names.begin(), names.end(), graph_.value_name(id)) != names.end();
  }
  return true;
}

// Whether to recompute a cheap op: when the operands to keep for it are no larger than its results. Operands that the
// backward graph has anyway, or that cheap ops recompute, cost nothing.
bool Splitter::cheap_again(const GraphNode& node, int depth) {
  if (depth > 8) return false;
  Bytes kept;
  for (const ValueId id : node.operands) {
    const NodeId producer = graph_.producer(id);
    if (!producer.valid() && request_.available[static_cast<std::size_t>(input_index(id))]) continue;
    if (used_[index(id)]) continue;
    if (producer.valid() && graph_.node(producer).op->cheap && cheap_again(graph_.node(producer), depth + 1)) continue;
    kept += graph_.type(id).bytes();
  }
  Bytes given;
  for (const ValueId id : node.results) given += graph_.type(id).bytes();
  return kept <= given;
}

int Splitter::input_index(ValueId id) const {
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    if (graph_.inputs()[i].value == id) return static_cast<int>(i);
  }
  CHECK(false, "%{} of '{}' has no producer", id.index, graph_.name());
  return -1;
}

void Splitter::build_forward() {
  Graph forward(graph_.name() + ".forward");
  ValueMap map(forward, graph_);
  std::map<int, std::vector<Value>> results;  // results of rewritten repeats
  for (int n = 0; n < static_cast<int>(graph_.nodes().size()); ++n) {
    const GraphNode& node = graph_.nodes()[static_cast<std::size_t>(n)];
    const auto body = bodies_.find(n);
    if (body == bodies_.end()) {
      map.copy(node);
      continue;
    }
    GraphNode wider = node;
    wider.regions = one_region(body->second);
    results[n] = copy_node(forward, wider, map.operands(node));
    for (std::size_t i = 0; i < node.results.size(); ++i) map.set(node.results[i], results[n][i]);
  }
  map.copy_outputs();
  for (std::size_t i = 0; i < residuals_.size(); ++i) {
    const Residual& r = residuals_[i];
    const auto further = [&] {
      return results[r.node][graph_.nodes()[static_cast<std::size_t>(r.node)].results.size() +
                             static_cast<std::size_t>(r.further)];
    };
    forward.output(fmt::format("residual.{}", i), r.node < 0 ? map[r.value] : further());
  }
  result_.forward = std::move(forward);
}

}  // namespace systole
