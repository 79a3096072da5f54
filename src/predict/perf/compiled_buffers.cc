#include "predict/perf/compiled_buffers.h"

#include <algorithm>
#include <map>
#include <set>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ir/work.h"
#include "describe/program/collective_call.h"
#include "predict/perf/compiled_graph.h"

namespace systole {
namespace {

constexpr int kNobody = -1;

using Sources = std::vector<int>;  // the buffers that hold a value, or that its readers compute it from

void add_to(Sources& all, const Sources& more) {
  for (const int buffer : more)
    if (std::ranges::find(all, buffer) == all.end()) all.push_back(buffer);
}

class BufferWalk {
 public:
  BufferWalk(const Program& program, const Function& step, const CompilerLayout& layout)
      : program_(program), step_(step), layout_(layout) {}

  CompiledBuffers run() {
    Scope top(step_.graph, layout_, 0);
    for (std::size_t i = 0; i < step_.graph.inputs().size(); ++i) {
      const GraphInput& input = step_.graph.inputs()[i];
      if (input.name.starts_with("coordinate.")) continue;
      result_.arguments += padded(step_.graph.type(input.value), layout_);
      top.mark_parameter(input.value, is_parameter(i));
    }
    std::set<int> aliased;
    for (const Alias& alias : step_.aliases) aliased.insert(alias.output);
    for (std::size_t i = 0; i < step_.graph.outputs().size(); ++i) {
      if (!aliased.contains(static_cast<int>(i)))
        result_.outputs += padded(step_.graph.type(step_.graph.outputs()[i].value), layout_);
    }
    place_tables();
    walk(top);
    touch(tables_);
    result_.end = time_;
    return std::move(result_);
  }

 private:
  // The graph that is being walked.
  struct Scope : CompiledGraph {
    Scope(const Graph& of, const CompilerLayout& layout, int loops)
        : CompiledGraph(of, layout, loops), sources(static_cast<std::size_t>(of.num_values())) {}
    std::vector<Sources> sources;  // per value
    Sources& at(ValueId id) { return sources[static_cast<std::size_t>(id.index)]; }
  };

  bool is_parameter(std::size_t input) const {
    const Port& port = step_.inputs[input];
    return program_.values[static_cast<std::size_t>(port.value)].residence == Residence::parameter;
  }

  CompiledBuffer& buffer(int index) { return result_.temporaries[static_cast<std::size_t>(index)]; }
  int add(const std::string& name, const Type& type, Bytes bytes, PeakOwner owner) {
    result_.temporaries.push_back({name, type, bytes, owner, depth_, time_, time_});
    return static_cast<int>(result_.temporaries.size()) - 1;
  }
  void touch(const Sources& sources) {
    for (const int source : sources) buffer(source).to = time_;
  }

  static PeakOwner owner_of(const Scope& scope, const GraphNode& node, ValueId id) {
    const auto of_loss = [](const GraphNode* n) { return one_of(*n, {"cross_entropy", "cross_entropy_grad"}); };
    if (of_loss(&node)) return PeakOwner::loss;
    if (scope.graph.type(id).ndim() > 2 && std::ranges::any_of(scope.nodes_reading(id), of_loss))
      return PeakOwner::loss;
    if (scope.is_parameter(id)) return PeakOwner::parameters;
    if (scope.is_gradient(id)) return PeakOwner::gradients;
    if (one_of(node, {"attention", "attention_grad"})) return PeakOwner::attention;
    return scope.depth > 0 ? PeakOwner::block : PeakOwner::step;
  }

  void walk(Scope& scope) {
    const int began = time_;
    Sources joined;  // sent by the next reduce_scatter of a layer, combined
    Bytes joined_bytes;
    Sources beside;  // sent while the layer's other work runs
    for (const GraphNode& node : scope.graph.nodes()) {
      ++time_;
      for (const ValueId id : node.operands) touch(scope.at(id));
      scope.mark_parameters(node);
      if (is(node, "repeat"))
        walk_repeat(scope, node);
      else
        place(scope, node);
      if (is(node, "repeat") && scope.depth == 0) compute_put_off();
      if (is(node, "reduce_scatter") && scope.depth > 0) {
        const Bytes bytes = scope.graph.type(node.operands[0]).bytes();
        if (!layout_.whole_groups_wait || collective_call(scope.graph, node).parts < program_.mesh.num_devices())
          add_to(beside, scope.at(node.operands[0]));
        if (joined_bytes + bytes > layout_.joins_up_to) joined.clear();
        if (joined.empty()) joined_bytes = Bytes();
        joined_bytes += bytes;
        add_to(joined, scope.at(node.operands[0]));
        touch(joined);
      }
      if (scope.depth == 0 && is(node, "contract")) place_head(scope, node);
    }
    touch(beside);
    if (!layout_.sends_next_round) return;
    for (const int sent : beside) {
      if (buffer(sent).depth == depth_) buffer(sent).from = began;
    }
  }

  void place(Scope& scope, const GraphNode& node) {
    if (scope.is_fused(node)) {
      Sources sources;
      for (const ValueId id : node.operands) add_to(sources, scope.at(id));
      scope.at(node.results[0]) = std::move(sources);
      return;
    }
    if (one_of(node, {"adamw", "sgd"})) return;  // updates in place
    if (layout_.wide_functions && node.op->elementwise && work_of(scope.graph, node).transcendentals > 0) {
      const Type wide = scope.graph.type(node.results[0]).with(DType::f32);
      add(std::string(node.op->name) + " in f32", wide, padded(wide, layout_), owner_of(scope, node, node.results[0]));
    }
    for (const ValueId id : node.results) {
      if (scope.readers_of(id).empty()) continue;
      if (scope.is_output(id) && scope.depth == 0) continue;  // counted as an argument or output
      const std::string& name = scope.graph.value_name(id);
      scope.at(id) = {add(name.empty() ? node.op->name : name, scope.graph.type(id), scope.bytes_in(id),
                          owner_of(scope, node, id))};
    }
  }

  // The two products of the logits' gradient, for the head's weights and for the head's input, run in either order: the
  // inputs and outputs of both are live at once.
  void place_head(Scope& scope, const GraphNode& node) {
    const Type* logits = scope.loss_read_by(node);
    if (logits == nullptr) return;
    for (const ValueId id : node.operands) add_to(read_by_loss_, scope.at(id));
    touch(read_by_loss_);
    if (loss_began_ == 0) loss_began_ = time_;
    for (const int made : scope.at(node.results[0])) buffer(made).from = loss_began_;
    put_off(scope, node, *logits);
  }

  // No op waits for the gradient of the head's weights. It is computed after the backward loop if the compiler puts it
  // off (puts_off_head); the logits stay live until then.
  void put_off(Scope& scope, const GraphNode& node, const Type& logits) {
    const Type& weights = scope.graph.type(node.results[0]);
    const bool of_head = std::ranges::find(weights.shape, logits.shape.back()) != weights.shape.end();
    if (!layout_.puts_off_head || !of_head || padded(weights, layout_) >= padded(logits, layout_)) return;
    for (const ValueId id : node.operands) add_to(put_off_reads_, scope.at(id));
    put_off_ = scope.at(node.results[0]);
  }
  void compute_put_off() {
    touch(put_off_reads_);
    for (const int late : put_off_) buffer(late).from = time_;
    put_off_.clear();
    put_off_reads_.clear();
  }

  void walk_repeat(Scope& scope, const GraphNode& node) {
    const Graph& body = node.regions[0];
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries"));
    Scope inner(body, layout_, scope.depth + 1);
    enter(scope, inner, node, carries);
    const Sources stacks = place_stacks(scope, inner, node, carries);
    ++depth_;
    walk(inner);
    --depth_;
    ++time_;
    for (const ValueId id : node.operands) touch(scope.at(id));
    for (const GraphInput& input : body.inputs()) touch(inner.at(input.value));
    touch(stacks);
    for (std::size_t c = 0; c < carries; ++c) scope.at(node.results[c]) = inner.at(body.inputs()[c].value);
  }

  // Sets what the body reads: carries have buffers of their own, all else is the loop's operand or a copy of it.
  void enter(Scope& scope, Scope& inner, const GraphNode& node, std::size_t carries) {
    const auto stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const GraphInput& input = inner.graph.inputs()[i];
      inner.at(input.value) = scope.at(node.operands[i]);
      inner.mark_parameter(input.value, scope.is_parameter(node.operands[i]));
      const Type& type = inner.graph.type(input.value);
      if (i < carries)
        inner.at(input.value) = {add("carry " + input.name, type, padded(type, layout_), PeakOwner::block)};
      else if (i < carries + stacked && layout_.hoists_casts)
        hoist(scope, inner, node.operands[i], input);
      else if (i < carries + stacked && layout_.gathers_outermost)
        transpose(scope, inner, node.operands[i], input);
    }
  }

  // Adds the stacks that the body writes a slice of in each iteration.
  Sources place_stacks(Scope& scope, const Scope& inner, const GraphNode& node, std::size_t carries) {
    const bool reverse = node.attrs.get_bool("reverse");
    Sources stacks;
    for (std::size_t r = carries; r < node.results.size(); ++r) {
      const GraphOutput& output = inner.graph.outputs()[r];
      stacks.push_back(add(output.name, scope.graph.type(node.results[r]),
                           inner.bytes_in(output.value) * node.attrs.get_int("count"),
                           reverse ? PeakOwner::gradients : PeakOwner::residuals));
      if (layout_.zeros_at_once && reverse && first_backward_ == 0) first_backward_ = time_;
      if (layout_.zeros_at_once && reverse) buffer(stacks.back()).from = first_backward_;
      scope.at(node.results[r]) = {stacks.back()};
    }
    return stacks;
  }

  // Casts all layers of a stacked parameter to the type of the products, before the loop.
  void hoist(const Scope& scope, Scope& inner, ValueId stack, const GraphInput& slice) {
    if (!scope.is_parameter(stack)) return;
    const std::vector<const GraphNode*> readers = inner.nodes_reading(slice.value);
    const auto casts = [](const GraphNode* by) { return is(*by, "cast"); };
    if (readers.empty() || inner.is_output(slice.value) || !std::ranges::all_of(readers, casts)) return;
    const ValueId cast = readers[0]->results[0];
    const Type type = scope.graph.type(stack).with(inner.graph.type(cast).dtype);
    inner.at(slice.value) = copy_of(stack, "cast " + slice.name, type, inner.put_end_to_end(cast));
  }

  // Transposes a stacked parameter that is gathered along another dim than the first; that dim becomes outermost.
  void transpose(const Scope& scope, Scope& inner, ValueId stack, const GraphInput& slice) {
    if (!scope.is_parameter(stack)) return;
    int dim = 0;
    for (const GraphNode* by : inner.nodes_reading(slice.value)) {
      for (const GraphNode* gather : inner.nodes_reading(is(*by, "cast") ? by->results[0] : slice.value))
        if (is(*gather, "all_gather")) dim = static_cast<int>(gather->attrs.get_int("dim"));
    }
    if (dim == 0) return;
    inner.at(slice.value) = copy_of(stack, "transposed " + slice.name, scope.graph.type(stack), -1);
  }

  // One copy, however many loops read it.
  Sources copy_of(ValueId stack, const std::string& name, const Type& type, int outer) {
    auto [at, fresh] = copies_.try_emplace(stack.index, kNobody);
    if (fresh) at->second = add(name, type, padded(type, layout_, outer), PeakOwner::parameters);
    touch({at->second});
    return {at->second};
  }

  // A table that is passed transposed, because that pads less, is stored once more in the layout that products and
  // updates read, and so are its moments.
  void place_tables() {
    for (const GraphNode& node : step_.graph.nodes()) {
      if (!is(node, "adamw")) continue;
      const Type& type = step_.graph.type(node.operands[0]);
      if (type.ndim() != 2) continue;
      const Bytes as_read = padded(type, layout_, 0);
      if (as_read <= padded(type, layout_)) continue;
      for (const char* name : {"table", "first moment of a table", "second moment of a table"})
        tables_.push_back(add(name, type, as_read, PeakOwner::parameters));
    }
  }

  const Program& program_;
  const Function& step_;
  const CompilerLayout& layout_;
  CompiledBuffers result_;
  std::map<int, int> copies_;  // stacked parameter's value → its buffer
  Sources tables_;
  Sources read_by_loss_;
  Sources put_off_, put_off_reads_;
  int loss_began_ = 0, first_backward_ = 0;
  int depth_ = 0;
  int time_ = 0;
};

}  // namespace

const char* name_of(PeakOwner owner) {
  switch (owner) {
    case PeakOwner::residuals: return "kept for the backward pass";
    case PeakOwner::parameters: return "copies of parameters";
    case PeakOwner::gradients: return "gradients";
    case PeakOwner::loss: return "logits and their gradient";
    case PeakOwner::block: return "inside a layer";
    case PeakOwner::attention: return "attention";
    case PeakOwner::step: return "outside of the layers";
  }
  return "";
}

CompiledBuffers compiled_buffers(const Program& program, const Function& step, const CompilerLayout& layout) {
  return BufferWalk(program, step, layout).run();
}

}  // namespace systole
