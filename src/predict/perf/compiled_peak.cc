#include "predict/perf/compiled_peak.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "describe/graph/collective_call.h"
#include "describe/graph/memory.h"
#include "describe/graph/op.h"
#include "describe/graph/passes/rewrite.h"
#include "describe/graph/work.h"
#include "predict/perf/tile_padding.h"

namespace systole {
namespace {

constexpr int kNobody = -1;

struct Buffer {
  std::string name;
  Type type;
  Bytes bytes;
  PeakOwner owner;
  int depth = 0;  // loops around it
  int from = 0, to = 0;
};

using Sources = std::vector<int>;  // the buffers that hold a value, or that it is computed from where it is read

void add_to(Sources& all, const Sources& more) {
  for (const int buffer : more)
    if (std::ranges::find(all, buffer) == all.end()) all.push_back(buffer);
}

// One graph as it is walked.
struct Scope {
  const Graph& graph;
  int depth = 0;
  bool backward = false;
  std::vector<Sources> sources = {};           // per value
  std::vector<std::vector<int>> readers = {};  // per value: nodes; the number of nodes stands for an output
  std::vector<bool> of_parameter = {};         // per value: a parameter, its slice, or what moves one
  std::vector<bool> of_gradient = {};          // per value: on its way to the optimizer
  Sources& at(ValueId id) { return sources[static_cast<std::size_t>(id.index)]; }
  const std::vector<int>& readers_of(ValueId id) const { return readers[static_cast<std::size_t>(id.index)]; }
  bool is_parameter(ValueId id) const { return of_parameter[static_cast<std::size_t>(id.index)]; }
};

bool one_of(const GraphNode& node, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return is(node, name); });
}

bool moves_only(const GraphNode& node) {
  return node.op->view || one_of(node, {"cast", "copy", "transpose", "slice", "take_part", "pad"});
}

class Walk {
 public:
  Walk(const Program& program, const Function& step, const CompilerLayout& layout)
      : program_(program), step_(step), layout_(layout) {}

  CompiledPeak run() {
    Scope top = scope_of(step_.graph, 0, false);
    for (std::size_t i = 0; i < step_.graph.inputs().size(); ++i) {
      const GraphInput& input = step_.graph.inputs()[i];
      if (input.name.starts_with("coordinate.")) continue;
      result_.arguments += padded(step_.graph.type(input.value), layout_);
      top.of_parameter[static_cast<std::size_t>(input.value.index)] = is_parameter(static_cast<int>(i));
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
    find_peak();
    return std::move(result_);
  }

 private:
  Scope scope_of(const Graph& graph, int depth, bool backward) {
    Scope scope{.graph = graph, .depth = depth, .backward = backward};
    const auto values = static_cast<std::size_t>(graph.num_values());
    scope.sources.resize(values);
    scope.readers.resize(values);
    scope.of_parameter.resize(values);
    scope.of_gradient.resize(values);
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      for (const ValueId id : graph.nodes()[n].operands)
        scope.readers[static_cast<std::size_t>(id.index)].push_back(static_cast<int>(n));
    }
    for (const GraphOutput& output : graph.outputs())
      scope.readers[static_cast<std::size_t>(output.value.index)].push_back(static_cast<int>(graph.nodes().size()));
    for (std::size_t n = graph.nodes().size(); n-- > 0;) {
      const GraphNode& node = graph.nodes()[n];
      if (one_of(node, {"adamw", "sgd"})) scope.of_gradient[static_cast<std::size_t>(node.operands[1].index)] = true;
      if (!is_collective(node) && !moves_only(node)) continue;
      if (scope.of_gradient[static_cast<std::size_t>(node.results[0].index)])
        scope.of_gradient[static_cast<std::size_t>(node.operands[0].index)] = true;
    }
    return scope;
  }

  bool is_parameter(int input) const {
    const Port& port = step_.inputs[static_cast<std::size_t>(input)];
    return program_.values[static_cast<std::size_t>(port.value)].residence == Residence::parameter;
  }

  int add(const std::string& name, const Type& type, Bytes bytes, PeakOwner owner) {
    buffers_.push_back({name, type, bytes, owner, depth_, time_, time_});
    return static_cast<int>(buffers_.size()) - 1;
  }
  void touch(const Sources& sources) {
    for (const int buffer : sources) buffers_[static_cast<std::size_t>(buffer)].to = time_;
  }

  PeakOwner owner_of(const Scope& scope, const GraphNode& node, ValueId id) const {
    const auto loss = [](const GraphNode& n) { return one_of(n, {"cross_entropy", "cross_entropy_grad"}); };
    for (const int reader : scope.readers_of(id)) {
      if (reader >= static_cast<int>(scope.graph.nodes().size())) continue;
      const GraphNode& by = scope.graph.nodes()[static_cast<std::size_t>(reader)];
      if (loss(by) && scope.graph.type(id).ndim() > 2) return PeakOwner::loss;
    }
    if (loss(node)) return PeakOwner::loss;
    if (scope.is_parameter(id)) return PeakOwner::parameters;
    if (scope.of_gradient[static_cast<std::size_t>(id.index)]) return PeakOwner::gradients;
    if (one_of(node, {"attention", "attention_grad"})) return PeakOwner::attention;
    return scope.depth > 0 ? PeakOwner::block : PeakOwner::step;
  }

  // Read by attention as it lies, itself or on its way there: rows of the head's size. Queries of several heads for
  // each of the keys' are laid out anew inside, and lie as fills tiles best before.
  bool of_attention(const Scope& scope, ValueId id) const {
    for (const int reader : scope.readers_of(id)) {
      if (reader >= static_cast<int>(scope.graph.nodes().size())) continue;
      const GraphNode& by = scope.graph.nodes()[static_cast<std::size_t>(reader)];
      if (one_of(by, {"attention", "attention_grad"})) {
        const Type &q = scope.graph.type(by.operands[0]), &k = scope.graph.type(by.operands[1]);
        if (id != by.operands[0] || q.size(2) == k.size(2)) return true;
      }
      if ((is(by, "rotary") || by.op->view) && of_attention(scope, by.results[0])) return true;
    }
    return false;
  }

  Bytes bytes_in(const Scope& scope, ValueId id) const {
    const Type& type = scope.graph.type(id);
    return type.ndim() == 4 && of_attention(scope, id) ? padded_heads(type, layout_) : padded(type, layout_);
  }

  // Computed where it is read: has no place of its own.
  bool is_fused(const Scope& scope, const GraphNode& node) const {
    if (layout_.products_read_places && !node.op->cheap && !node.op->view && read_by_product(scope, node)) return false;
    if (node.op->view || one_of(node, {"broadcast", "constant", "take_part", "slice"})) return true;
    if (is(node, "cross_entropy_grad")) return true;
    const bool light = node.op->elementwise || one_of(node, {"transpose", "pad", "rotary", "copy"});
    if (!light) return false;
    return node.op->cheap || scope.readers_of(node.results[0]).size() <= 1 || !ends_another(scope, node);
  }

  static bool read_by_product(const Scope& scope, const GraphNode& node) {
    return std::ranges::any_of(scope.readers_of(node.results[0]), [&](int reader) {
      return reader < static_cast<int>(scope.graph.nodes().size()) &&
             is(scope.graph.nodes()[static_cast<std::size_t>(reader)], "contract");
    });
  }

  // What is the end of a product, a norm or attention, in its place: an operand that nobody else reads. All else that
  // is elementwise is done again by each reader.
  bool ends_another(const Scope& scope, const GraphNode& node) const {
    return std::ranges::any_of(node.operands, [&](ValueId id) {
      const NodeId by = scope.graph.producer(id);
      return by.valid() && scope.readers_of(id).size() == 1 && !is_fused(scope, scope.graph.node(by));
    });
  }

  void walk(Scope& scope) {
    const int began = time_;
    Sources joined;  // what the next reduce_scatter of a layer sends, several in one
    Bytes joined_bytes;
    Sources beside;  // and what is sent while the layer's other work is done
    for (const GraphNode& node : scope.graph.nodes()) {
      ++time_;
      for (const ValueId id : node.operands) touch(scope.at(id));
      mark_parameters(scope, node);
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
      if (scope.depth == 0 && is(node, "contract") && reads_loss(scope, node)) together(scope, node);
    }
    touch(beside);
    if (!layout_.sends_next_round) return;
    for (const int buffer : beside) {
      Buffer& sent = buffers_[static_cast<std::size_t>(buffer)];
      if (sent.depth == depth_) sent.from = began;
    }
  }

  // The two products of the logits' gradient, for the head's weights and for what it was applied to, come in either
  // order: all that both read and make is alive at once.
  static bool reads_loss(const Scope& scope, const GraphNode& node) {
    return std::ranges::any_of(node.operands, [&](ValueId id) {
      const NodeId by = scope.graph.producer(id);
      return by.valid() && is(scope.graph.node(by), "cross_entropy_grad");
    });
  }
  void together(Scope& scope, const GraphNode& node) {
    for (const ValueId id : node.operands) add_to(read_by_loss_, scope.at(id));
    touch(read_by_loss_);
    if (loss_began_ == 0) loss_began_ = time_;
    for (const int buffer : scope.at(node.results[0])) buffers_[static_cast<std::size_t>(buffer)].from = loss_began_;
    put_off(scope, node);
  }

  // The gradient of the head's weights, which nobody waits for: computed after the backward loop where that loop keeps
  // collectives beside it, and until then the logits stay.
  void put_off(Scope& scope, const GraphNode& node) {
    const Type &weights = scope.graph.type(node.results[0]), &logits = logits_of(scope, node);
    const bool of_head = std::ranges::find(weights.shape, logits.shape.back()) != weights.shape.end();
    if (!layout_.puts_off_head || !of_head || padded(weights, layout_) >= padded(logits, layout_)) return;
    for (const ValueId id : node.operands) add_to(put_off_reads_, scope.at(id));
    put_off_ = scope.at(node.results[0]);
  }
  static const Type& logits_of(const Scope& scope, const GraphNode& node) {
    for (const ValueId id : node.operands) {
      const NodeId by = scope.graph.producer(id);
      if (by.valid() && is(scope.graph.node(by), "cross_entropy_grad")) return scope.graph.type(id);
    }
    return scope.graph.type(node.operands[0]);
  }
  void compute_put_off() {
    touch(put_off_reads_);
    for (const int buffer : put_off_) buffers_[static_cast<std::size_t>(buffer)].from = time_;
    put_off_.clear();
    put_off_reads_.clear();
  }

  static void mark_parameters(Scope& scope, const GraphNode& node) {
    if (moves_only(node) || is(node, "all_gather"))
      scope.of_parameter[static_cast<std::size_t>(node.results[0].index)] = scope.is_parameter(node.operands[0]);
  }

  void place(Scope& scope, const GraphNode& node) {
    if (is_fused(scope, node)) {
      Sources sources;
      for (const ValueId id : node.operands) add_to(sources, scope.at(id));
      scope.at(node.results[0]) = std::move(sources);
      return;
    }
    if (one_of(node, {"adamw", "sgd"})) return;  // in the places of what they update
    if (layout_.wide_functions && node.op->elementwise && work_of(scope.graph, node).transcendentals > 0) {
      const Type wide = scope.graph.type(node.results[0]).with(DType::f32);
      add(std::string(node.op->name) + " in f32", wide, padded(wide, layout_), owner_of(scope, node, node.results[0]));
    }
    for (const ValueId id : node.results) {
      const std::vector<int>& readers = scope.readers_of(id);
      if (readers.empty()) continue;
      const bool is_output = readers.back() == static_cast<int>(scope.graph.nodes().size());
      if (is_output && scope.depth == 0) continue;  // has a place of its own
      const std::string& name = scope.graph.value_name(id);
      scope.at(id) = {add(name.empty() ? node.op->name : name, scope.graph.type(id), bytes_in(scope, id),
                          owner_of(scope, node, id))};
    }
  }

  void walk_repeat(Scope& scope, const GraphNode& node) {
    const Graph& body = node.regions[0];
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries"));
    const auto stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    const bool reverse = node.attrs.get_bool("reverse");
    Scope inner = scope_of(body, scope.depth + 1, reverse);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId id = body.inputs()[i].value;
      inner.at(id) = scope.at(node.operands[i]);
      inner.of_parameter[static_cast<std::size_t>(id.index)] = scope.is_parameter(node.operands[i]);
      if (i < carries)
        inner.at(id) = {
            add("carry " + body.inputs()[i].name, body.type(id), padded(body.type(id), layout_), PeakOwner::block)};
      else if (i < carries + stacked && layout_.hoists_casts)
        hoist(scope, inner, node.operands[i], id);
      else if (i < carries + stacked && layout_.gathers_outermost)
        transpose(scope, inner, node.operands[i], id);
    }
    Sources stacks;
    for (std::size_t r = carries; r < node.results.size(); ++r) {
      const ValueId out = body.outputs()[r].value;
      const Bytes one = bytes_in(inner, out);
      const std::int64_t count = node.attrs.get_int("count");
      stacks.push_back(add(body.outputs()[r].name, scope.graph.type(node.results[r]), one * count,
                           reverse ? PeakOwner::gradients : PeakOwner::residuals));
      if (layout_.zeros_at_once && reverse && first_backward_ == 0) first_backward_ = time_;
      if (layout_.zeros_at_once && reverse) buffers_[static_cast<std::size_t>(stacks.back())].from = first_backward_;
      scope.at(node.results[r]) = {stacks.back()};
    }
    ++depth_;
    walk(inner);
    --depth_;
    ++time_;
    for (const ValueId id : node.operands) touch(scope.at(id));
    for (const GraphInput& input : body.inputs()) touch(inner.at(input.value));
    touch(stacks);
    for (std::size_t c = 0; c < carries; ++c) scope.at(node.results[c]) = inner.at(body.inputs()[c].value);
  }

  // All layers of a stacked parameter in the type of the products, before the loop.
  void hoist(Scope& scope, Scope& inner, ValueId stack, ValueId slice) {
    if (!scope.is_parameter(stack)) return;
    const std::vector<int>& readers = inner.readers_of(slice);
    const auto casts = [&](int n) {
      return n < static_cast<int>(inner.graph.nodes().size()) &&
             is(inner.graph.nodes()[static_cast<std::size_t>(n)], "cast");
    };
    if (readers.empty() || !std::ranges::all_of(readers, casts)) return;
    auto [at, fresh] = hoisted_.try_emplace(stack.index, kNobody);
    if (fresh) {
      const GraphNode& cast = inner.graph.nodes()[static_cast<std::size_t>(readers[0])];
      const Type type = scope.graph.type(stack).with(inner.graph.type(cast.results[0]).dtype);
      at->second = add("cast " + inner.graph.inputs()[static_cast<std::size_t>(slice.index)].name, type,
                       padded(type, layout_, put_end_to_end(inner, cast.results[0])), PeakOwner::parameters);
    }
    inner.at(slice) = {at->second};
    touch({at->second});
  }

  // A stacked parameter whose parts are put end to end along another dim than the first, which is outermost for it.
  void transpose(const Scope& scope, Scope& inner, ValueId stack, ValueId slice) {
    if (!scope.is_parameter(stack)) return;
    int dim = 0;
    for (const int reader : inner.readers_of(slice)) {
      if (reader >= static_cast<int>(inner.graph.nodes().size())) continue;
      const GraphNode& by = inner.graph.nodes()[static_cast<std::size_t>(reader)];
      const ValueId moved = is(by, "cast") ? by.results[0] : slice;
      for (const int next : inner.readers_of(moved)) {
        if (next >= static_cast<int>(inner.graph.nodes().size())) continue;
        const GraphNode& gather = inner.graph.nodes()[static_cast<std::size_t>(next)];
        if (is(gather, "all_gather")) dim = static_cast<int>(gather.attrs.get_int("dim"));
      }
    }
    if (dim == 0) return;
    auto [at, fresh] = hoisted_.try_emplace(stack.index, kNobody);
    if (fresh) {
      const Type& type = scope.graph.type(stack);
      at->second = add("transposed " + inner.graph.inputs()[static_cast<std::size_t>(slice.index)].name, type,
                       padded(type, layout_), PeakOwner::parameters);
    }
    inner.at(slice) = {at->second};
    touch({at->second});
  }

  // The dim of a stack whose parts of all devices are put end to end: parts that fill no whole tiles cannot lie
  // innermost for it. -1: none.
  int put_end_to_end(const Scope& inner, ValueId slice) const {
    for (const int reader : inner.readers_of(slice)) {
      if (reader >= static_cast<int>(inner.graph.nodes().size())) continue;
      const GraphNode& by = inner.graph.nodes()[static_cast<std::size_t>(reader)];
      if (!is(by, "all_gather")) continue;
      const int dim = static_cast<int>(by.attrs.get_int("dim"));
      if (inner.graph.type(slice).size(dim) % layout_.lanes != 0) return dim + 1;
    }
    return -1;
  }

  // A table that lies transposed where it is given, for that pads less, is kept once more as products and updates read
  // it, and so are its moments.
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

  void find_peak() {
    std::vector<std::int64_t> change(static_cast<std::size_t>(time_) + 2, 0);
    for (const Buffer& buffer : buffers_) {
      change[static_cast<std::size_t>(buffer.from)] += buffer.bytes.count();
      change[static_cast<std::size_t>(buffer.to) + 1] -= buffer.bytes.count();
    }
    std::int64_t alive = 0, most = -1;
    int when = 0;
    for (int t = 0; t <= time_; ++t) {
      alive += change[static_cast<std::size_t>(t)];
      if (alive <= most) continue;
      most = alive;
      when = t;
    }
    std::vector<Block> blocks;
    for (const Buffer& buffer : buffers_) {
      if (buffer.bytes.count() > 0) blocks.push_back({buffer.bytes, {{buffer.from, buffer.to}}});
    }
    result_.temporaries = place_blocks(blocks, layout_.alignment);
    const Bytes alive_at_most(std::max<std::int64_t>(most, 0));
    result_.gaps = result_.temporaries - alive_at_most;
    std::array<Bytes, kNumPeakOwners> sums{};
    Bytes of_layer;
    for (const Buffer& buffer : buffers_) {
      if (buffer.from > when || buffer.to < when) continue;
      sums[static_cast<std::size_t>(buffer.owner)] += buffer.bytes;
      if (buffer.depth > 0) of_layer += buffer.bytes;
      result_.buffers.push_back({buffer.name, buffer.type, buffer.owner, buffer.bytes});
    }
    result_.gaps = std::max({result_.gaps, of_layer * layout_.layer_gaps, alive_at_most * layout_.gaps});
    result_.temporaries = alive_at_most + result_.gaps;
    if (result_.temporaries <= layout_.on_chip) {
      result_.on_chip = result_.temporaries;
      result_.temporaries = result_.gaps = Bytes();
      result_.buffers.clear();
      return;
    }
    const auto larger = [](const auto& a, const auto& b) { return a.bytes > b.bytes; };
    std::ranges::stable_sort(result_.buffers, larger);
    for (std::size_t o = 0; o < sums.size(); ++o)
      if (sums[o].count() > 0) result_.terms.push_back({static_cast<PeakOwner>(o), sums[o]});
    std::ranges::stable_sort(result_.terms, larger);
  }

  const Program& program_;
  const Function& step_;
  const CompilerLayout& layout_;
  CompiledPeak result_;
  std::vector<Buffer> buffers_;
  std::map<int, int> hoisted_;  // by the stacked parameter's value: its buffer
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

// Seen in what libtpu 0.0.51 dumped of the fitted rows of data/xla/matrix.csv, 2026-11-22.
CompilerLayout layout_of_compiler(std::string_view plugin, std::string_view chip) {
  if (plugin == "gpu") {
    CompilerLayout layout{.alignment = 256};
    layout.zeros_at_once = layout.products_read_places = layout.wide_functions = layout.gathers_outermost =
        layout.sends_next_round = true;
    return layout;
  }
  if (plugin != "tpu")
    fail(error(ErrorKind::not_found, "nothing is known of how the compiler of '{}' lays out memory", plugin));
  CompilerLayout layout{.sublanes = 8, .lanes = 128, .alignment = 512, .hoists_casts = true};
  layout.joins_up_to = Bytes(std::int64_t{120} << 20);
  layout.whole_groups_wait = chip == "v5e" || chip == "v6e";
  // The most that was used of 128 MiB (v5e, v6e) and of 64.
  layout.on_chip = Bytes(std::int64_t{chip == "v5e"     ? 112
                                      : chip == "v6e"   ? 96
                                      : chip == "v5p"   ? 45
                                      : chip == "tpu7x" ? 64
                                                        : 0}
                         << 20);
  layout.puts_off_head = !layout.whole_groups_wait;
  layout.layer_gaps = 0.1;
  layout.gaps = chip == "tpu7x" ? 0.06 : 0;
  return layout;
}

CompiledPeak compiled_peak(const Program& program, const Function& step, const CompilerLayout& layout) {
  return Walk(program, step, layout).run();
}

}  // namespace systole
