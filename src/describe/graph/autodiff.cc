#include "describe/graph/autodiff.h"

#include <algorithm>
#include <map>
#include <set>

#include "describe/graph/op.h"
#include "describe/graph/ops/ops.h"

namespace systole {
namespace {

// Where an input of the backward graph comes from.
struct Source {
  enum class Kind { input, residual, cotangent } kind;
  int index;  // of the graph's input, of Split::residuals, of the graph's output
};

// A graph taken apart.
struct Split {
  Graph forward;                              // the outputs of the graph, then the residuals
  Graph backward;                             // outputs: a gradient for each wanted input that has one
  std::vector<Source> sources;                // per input of `backward`
  std::vector<std::optional<int>> gradients;  // per input of the graph: which output of `backward`
  int num_residuals = 0;
};

struct Request {
  const Graph& graph;
  std::vector<bool> wanted;      // per input: its gradient is asked for
  std::vector<bool> available;   // per input: the backward graph may have it again for nothing
  std::vector<bool> cotangents;  // per output: one is given
  std::optional<int> seed;       // this output's cotangent is the constant 1 instead
  const RecomputePolicy& policy;
  bool in_block;  // inside a repeat, where policies act
};

Split split(const Request& request);

bool is_repeat(const GraphNode& node) { return node.op->name == std::string_view("repeat"); }

class Splitter : public GradientCall {
 public:
  explicit Splitter(const Request& request)
      : request_(request),
        graph_(request.graph),
        backward_(graph_.name() + ".backward"),
        cotangent_(static_cast<std::size_t>(graph_.num_values())),
        used_(static_cast<std::size_t>(graph_.num_values())),
        active_(static_cast<std::size_t>(graph_.num_values()), false) {}

  Split run() {
    find_active();
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) seed_output(static_cast<int>(i));
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) backward_node(n);
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

  // --- GradientCall, of the node at hand
  const Attrs& attrs() const override { return node_->attrs; }
  int num_operands() const override { return static_cast<int>(node_->operands.size()); }
  const Type& operand_type(int i) const override { return graph_.type(node_->operands[static_cast<std::size_t>(i)]); }
  const Type& result_type(int i) const override { return graph_.type(node_->results[static_cast<std::size_t>(i)]); }
  Value operand(int i) override { return use(node_->operands[static_cast<std::size_t>(i)]); }
  Value result(int i) override { return use(node_->results[static_cast<std::size_t>(i)]); }
  std::optional<Value> cotangent(int i) const override {
    return cotangent_[index(node_->results[static_cast<std::size_t>(i)])];
  }
  bool needs(int i) const override { return active_[index(node_->operands[static_cast<std::size_t>(i)])]; }
  Graph& graph() override { return backward_; }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }

  // A residual: a value of the graph, or the k-th further result that a rewritten repeat gives.
  struct Residual {
    ValueId value;
    int node = -1, further = -1;
  };

  // active: a floating-point value that depends on a wanted input.
  void find_active() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId id = graph_.inputs()[i].value;
      active_[index(id)] = request_.wanted[i] && is_float(graph_.type(id).dtype);
    }
    for (const GraphNode& node : graph_.nodes()) {
      const bool any =
          std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId id) { return active_[index(id)]; });
      for (const ValueId id : node.results) active_[index(id)] = any && is_float(graph_.type(id).dtype);
    }
  }

  void seed_output(int i) {
    const ValueId id = graph_.outputs()[static_cast<std::size_t>(i)].value;
    if (request_.seed == i) accumulate(id, constant(backward_, graph_.type(id), 1));
    if (!request_.cotangents[static_cast<std::size_t>(i)] || !active_[index(id)]) return;
    result_.sources.push_back({Source::Kind::cotangent, i});
    accumulate(id, backward_.input(fmt::format("cotangent.{}", i), graph_.type(id)));
  }

  void accumulate(ValueId id, Value g) {
    CHECK(g.type() == graph_.type(id), "a gradient {} for {} in '{}'", to_string(g.type()), to_string(graph_.type(id)),
          graph_.name());
    std::optional<Value>& sum = cotangent_[index(id)];
    sum = sum ? add(*sum, g) : g;
  }

  void backward_node(std::size_t n) {
    node_ = &graph_.nodes()[n];
    const auto has = [&](ValueId id) { return cotangent_[index(id)].has_value() && active_[index(id)]; };
    if (std::none_of(node_->results.begin(), node_->results.end(), has)) return;
    if (is_repeat(*node_)) return backward_repeat(n);
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

  void backward_repeat(std::size_t n);

  // The value `id` of the graph, in the backward graph.
  Value use(ValueId id) {
    std::optional<Value>& known = used_[index(id)];
    if (!known) known = obtain(id);
    return *known;
  }

  Value obtain(ValueId id) {
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

  Value residual(Residual r) {
    const Type& type =
        r.node < 0 ? graph_.type(r.value) : further_types_.at(r.node)[static_cast<std::size_t>(r.further)];
    result_.sources.push_back({Source::Kind::residual, static_cast<int>(residuals_.size())});
    const Value value = backward_.input(fmt::format("residual.{}", residuals_.size()), type);
    residuals_.push_back(r);
    return value;
  }

  Value again(ValueId id, const GraphNode& node) {
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

  bool keeps(ValueId id, const GraphNode& node) {
    if (node.op->cheap && cheap_again(node, 0)) return false;
    if (is_repeat(node)) return true;
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

  // Cheap ops are done again when what they read is at hand anyway, or is no larger than what they give.
  bool cheap_again(const GraphNode& node, int depth) {
    if (depth > 8) return false;
    Bytes kept;
    for (const ValueId id : node.operands) {
      const NodeId producer = graph_.producer(id);
      if (!producer.valid() && request_.available[static_cast<std::size_t>(input_index(id))]) continue;
      if (used_[index(id)]) continue;
      if (producer.valid() && graph_.node(producer).op->cheap && cheap_again(graph_.node(producer), depth + 1))
        continue;
      kept += graph_.type(id).bytes();
    }
    Bytes given;
    for (const ValueId id : node.results) given += graph_.type(id).bytes();
    return kept <= given;
  }

  int input_index(ValueId id) const {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      if (graph_.inputs()[i].value == id) return static_cast<int>(i);
    }
    CHECK(false, "%{} of '{}' has no producer", id.index, graph_.name());
    return -1;
  }

  void build_forward() {
    Graph forward(graph_.name() + ".forward");
    std::vector<Value> map(static_cast<std::size_t>(graph_.num_values()));
    std::map<int, std::vector<Value>> further;
    for (const GraphInput& input : graph_.inputs()) {
      map[index(input.value)] =
          input.parameter ? forward.parameter(*input.parameter) : forward.input(input.name, graph_.type(input.value));
    }
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const GraphNode& node = graph_.nodes()[n];
      std::vector<Value> operands;
      for (const ValueId id : node.operands) operands.push_back(map[index(id)]);
      const auto body = bodies_.find(static_cast<int>(n));
      const std::vector<Value> results = forward.apply(
          *node.op, operands, node.attrs, body == bodies_.end() ? node.regions : std::vector<Graph>{body->second});
      forward.last_node().recomputed = node.recomputed;
      for (std::size_t i = 0; i < node.results.size(); ++i) {
        map[index(node.results[i])] = results[i];
        if (const std::string& name = graph_.value_name(node.results[i]); !name.empty())
          forward.set_value_name(results[i].id, name);
      }
      further[static_cast<int>(n)] = {results.begin() + static_cast<std::ptrdiff_t>(node.results.size()),
                                      results.end()};
    }
    for (const GraphOutput& output : graph_.outputs()) forward.output(output.name, map[index(output.value)]);
    for (std::size_t i = 0; i < residuals_.size(); ++i) {
      const Residual& r = residuals_[i];
      forward.output(fmt::format("residual.{}", i),
                     r.node < 0 ? map[index(r.value)] : further[r.node][static_cast<std::size_t>(r.further)]);
    }
    result_.forward = std::move(forward);
  }

  const Request& request_;
  const Graph& graph_;
  Graph backward_;
  Split result_;
  std::vector<std::optional<Value>> cotangent_;  // per value of graph_, in backward_
  std::vector<std::optional<Value>> used_;       // per value of graph_, in backward_
  std::vector<bool> active_;
  std::vector<Residual> residuals_;
  std::map<int, Graph> bodies_;                     // node of graph_ → its rewritten body
  std::map<int, std::vector<Type>> further_types_;  // node of graph_ → types of its further results
  const GraphNode* node_ = nullptr;
};

// The operand classes of a repeat.
struct Classes {
  std::size_t carries, stacked, shared;
  explicit Classes(const GraphNode& node)
      : carries(static_cast<std::size_t>(node.attrs.get_int("carries"))),
        stacked(static_cast<std::size_t>(node.attrs.get_int("stacked"))),
        shared(static_cast<std::size_t>(node.attrs.get_int("shared"))) {}
  bool is_carry(std::size_t i) const { return i < carries; }
  bool is_stacked(std::size_t i) const { return i >= carries && i < carries + stacked; }
};

// Which body inputs are active, carries settled to a fixed point: a carry is active when it starts so or becomes so.
std::vector<bool> active_inputs(const GraphNode& node, std::vector<bool> active) {
  const Graph& body = node.regions[0];
  const Classes classes(node);
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<bool> value(static_cast<std::size_t>(body.num_values()), false);
    for (std::size_t i = 0; i < active.size(); ++i)
      value[static_cast<std::size_t>(body.inputs()[i].value.index)] = active[i];
    for (const GraphNode& inner : body.nodes()) {
      const bool any = std::any_of(inner.operands.begin(), inner.operands.end(),
                                   [&](ValueId id) { return value[static_cast<std::size_t>(id.index)]; });
      for (const ValueId id : inner.results)
        value[static_cast<std::size_t>(id.index)] = any && is_float(body.type(id).dtype);
    }
    for (std::size_t i = 0; i < classes.carries; ++i) {
      if (!active[i] && value[static_cast<std::size_t>(body.outputs()[i].value.index)]) active[i] = changed = true;
    }
  }
  return active;
}

void Splitter::backward_repeat(std::size_t n) {
  const GraphNode& node = *node_;
  const Graph& body = node.regions[0];
  const Classes classes(node);
  std::vector<bool> wanted, available;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    wanted.push_back(active_[index(node.operands[i])]);
    available.push_back(!classes.is_carry(i));
  }
  wanted = active_inputs(node, wanted);
  std::vector<bool> given;
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    given.push_back(i < classes.carries ? wanted[i] : cotangent_[index(node.results[i])].has_value());
  }
  const Split inner = split(Request{body, wanted, available, given, std::nullopt, request_.policy, true});

  // The forward repeat gives the residuals of each iteration, stacked.
  const std::int64_t count = node.attrs.get_int("count");
  const std::string& dim = node.attrs.get_string("dim");
  std::vector<Type>& further = further_types_[static_cast<int>(n)];
  for (std::size_t i = body.outputs().size(); i < inner.forward.outputs().size(); ++i) {
    further.push_back(stacked_type(inner.forward.type(inner.forward.outputs()[i].value), count, dim));
  }
  bodies_.emplace(static_cast<int>(n), inner.forward);

  // The body in reverse: carries are the cotangents of the carries and one sum per wanted shared operand.
  Graph reversed(body.name() + ".backward");
  std::vector<Value> carries, stacked, shared;         // operands, in backward_
  std::vector<Value> arguments(inner.sources.size());  // of inner.backward, in `reversed`
  std::map<std::size_t, Value> carried_in, sum_in;     // body input → value in `reversed`
  for (std::size_t i = 0; i < classes.carries; ++i) {
    if (!wanted[i]) continue;
    const std::optional<Value>& g = cotangent_[index(node.results[i])];
    carries.push_back(g ? *g : constant(backward_, graph_.type(node.results[i]), 0));
    carried_in.emplace(i, reversed.input(fmt::format("cotangent.{}", i), carries.back().type()));
  }
  for (std::size_t i = classes.carries + classes.stacked; i < node.operands.size(); ++i) {
    if (!wanted[i]) continue;
    carries.push_back(constant(backward_, graph_.type(node.operands[i]), 0));
    sum_in.emplace(i, reversed.input(fmt::format("sum.{}", i), carries.back().type()));
  }
  for (std::size_t s = 0; s < inner.sources.size(); ++s) {  // stacked operands
    const Source& source = inner.sources[s];
    const auto i = static_cast<std::size_t>(source.index);
    std::optional<Value> operand;
    if (source.kind == Source::Kind::residual) {
      operand = residual({ValueId{}, static_cast<int>(n), source.index});
    } else if (source.kind == Source::Kind::cotangent && i >= classes.carries) {
      operand = *cotangent_[index(node.results[i])];
    } else if (source.kind == Source::Kind::input && classes.is_stacked(i)) {
      operand = use(node.operands[i]);
    }
    if (!operand) continue;
    stacked.push_back(*operand);
    arguments[s] = reversed.input(fmt::format("slice.{}", s), slice_type(operand->type()));
  }
  for (std::size_t s = 0; s < inner.sources.size(); ++s) {  // shared operands and carried cotangents
    const Source& source = inner.sources[s];
    const auto i = static_cast<std::size_t>(source.index);
    if (source.kind == Source::Kind::cotangent && i < classes.carries) arguments[s] = carried_in.at(i);
    if (source.kind != Source::Kind::input || classes.is_stacked(i)) continue;
    shared.push_back(use(node.operands[i]));
    arguments[s] = reversed.input(fmt::format("shared.{}", s), shared.back().type());
  }

  const std::vector<Value> gradients = inline_graph(reversed, inner.backward, arguments);
  const auto gradient_of = [&](std::size_t i) -> std::optional<Value> {
    if (!inner.gradients[i]) return std::nullopt;
    return gradients[static_cast<std::size_t>(*inner.gradients[i])];
  };
  for (const auto& [i, in] : carried_in) {
    const std::optional<Value> g = gradient_of(i);
    reversed.output(fmt::format("cotangent.{}", i), g ? *g : constant(reversed, in.type(), 0));
  }
  for (const auto& [i, in] : sum_in) {
    const std::optional<Value> g = gradient_of(i);
    reversed.output(fmt::format("sum.{}", i), g ? add(in, *g) : in);
  }
  std::vector<std::size_t> stacked_gradients;
  for (std::size_t i = classes.carries; i < classes.carries + classes.stacked; ++i) {
    if (const std::optional<Value> g = gradient_of(i)) {
      stacked_gradients.push_back(i);
      reversed.output(fmt::format("gradient.{}", i), *g);
    }
  }
  const Repeat done =
      repeat(std::move(reversed), count, carries, stacked, shared, dim, !node.attrs.get_bool("reverse"));
  std::size_t at = 0;
  const auto give = [&](std::size_t i, Value g) {
    if (active_[index(node.operands[i])]) accumulate(node.operands[i], g);
  };
  for (const auto& [i, in] : carried_in) give(i, done.carries[at++]);
  for (const auto& [i, in] : sum_in) give(i, done.carries[at++]);
  for (std::size_t k = 0; k < stacked_gradients.size(); ++k) give(stacked_gradients[k], done.outputs[k]);
}

Split split(const Request& request) { return Splitter(request).run(); }

}  // namespace

Differentiated differentiate(const Graph& loss, std::string_view loss_output, const RecomputePolicy& policy) {
  const auto is_loss = [&](const GraphOutput& output) { return output.name == loss_output; };
  const auto found = std::find_if(loss.outputs().begin(), loss.outputs().end(), is_loss);
  if (found == loss.outputs().end())
    fail(error(ErrorKind::not_found, "graph '{}' has no output '{}'", loss.name(), loss_output));
  const Type& type = loss.type(found->value);
  if (!is_float(type.dtype) || type.ndim() != 0)
    fail(error(ErrorKind::invalid, "the loss must be a float scalar, not {}", to_string(type)));

  std::vector<bool> wanted;
  for (const GraphInput& input : loss.inputs()) wanted.push_back(input.parameter && input.parameter->trainable);
  const std::vector<bool> available(loss.inputs().size(), true), cotangents(loss.outputs().size(), false);
  const int seed = static_cast<int>(found - loss.outputs().begin());
  Split parts = split(Request{loss, wanted, available, cotangents, seed, policy, false});

  // One gradient per trainable parameter, in order of declaration, zeros where the loss does not depend on it.
  Differentiated result{std::move(parts.forward), Graph(loss.name() + ".backward")};
  std::vector<Value> inputs;
  for (const GraphInput& input : parts.backward.inputs()) {
    inputs.push_back(input.parameter ? result.backward.parameter(*input.parameter)
                                     : result.backward.input(input.name, parts.backward.type(input.value)));
  }
  const std::vector<Value> gradients = inline_graph(result.backward, parts.backward, inputs);
  for (std::size_t i = 0; i < loss.inputs().size(); ++i) {
    if (!wanted[i]) continue;
    const Parameter& p = *loss.inputs()[i].parameter;
    const std::optional<int> g = parts.gradients[i];
    result.backward.output("gradient." + p.name,
                           g ? gradients[static_cast<std::size_t>(*g)] : constant(result.backward, p.type, 0));
  }
  return result;
}

}  // namespace systole
