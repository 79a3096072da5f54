#include "predict/perf/compiled_kernels.h"

#include <algorithm>
#include <optional>
#include <set>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/stablehlo/attention_blocks.h"
#include "predict/perf/compiler_layout.h"
#include "predict/perf/product_dims.h"

namespace systole {
namespace {

constexpr int kNone = -1;
constexpr double kSmall = 0.125;  // of the chip's own memory: loop carries up to this size stay there

// A value in memory, and the kernel that writes it.
struct Place {
  double bytes = 0, elements = 0;
  int kernel = kNone;
  bool read = false;  // by another kernel
};

using Places = std::set<int>;

struct Kernel {
  CompiledKernel told;
  Places reads;
};

bool one_of(const GraphNode& node, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return is(node, name); });
}

bool is_collective(const GraphNode& node) {
  return one_of(node, {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"});
}

// The graph that is being walked.
struct Scope {
  const Graph& graph;
  double runs = 1;
  int depth = 0;
  std::vector<Places> places = {};  // per value: where it lies, or what its readers compute it from
  std::vector<int> readers = {};    // per value: nodes
  std::vector<bool> moved = {};     // per value: an input, or a moved one

  Places& at(ValueId id) { return places[static_cast<std::size_t>(id.index)]; }
  int readers_of(ValueId id) const { return readers[static_cast<std::size_t>(id.index)]; }
};

class Walk {
 public:
  Walk(const Function& step, const CompilerLayout& layout) : step_(step), layout_(layout) {}

  std::vector<CompiledKernel> run() {
    Scope top = scope_of(step_.graph, 1, 0);
    for (const GraphInput& input : step_.graph.inputs()) top.at(input.value) = {place(top, input.value, kNone)};
    walk(top);
    for (const GraphOutput& output : step_.graph.outputs()) read(kNone, top.at(output.value));
    std::vector<CompiledKernel> told;
    for (Kernel& kernel : kernels_) {
      for (const int read : kernel.reads) kernel.told.bytes += at(read).bytes;
      told.push_back(std::move(kernel.told));
    }
    for (const Place& written : places_) {
      if (written.kernel != kNone && written.read)
        told[static_cast<std::size_t>(written.kernel)].bytes += written.bytes;
    }
    return told;
  }

 private:
  static Scope scope_of(const Graph& graph, double runs, int depth) {
    Scope scope{.graph = graph, .runs = runs, .depth = depth};
    scope.places.resize(static_cast<std::size_t>(graph.num_values()));
    scope.readers.resize(scope.places.size());
    for (const GraphNode& node : graph.nodes())
      for (const ValueId id : node.operands) ++scope.readers[static_cast<std::size_t>(id.index)];
    return scope;
  }

  Place& at(int place) { return places_[static_cast<std::size_t>(place)]; }

  Bytes bytes_of_value(const Scope& scope, const Type& type) const {
    return scope.depth > 0 && type.ndim() == 4 ? padded_heads(type, layout_) : padded(type, layout_);
  }

  int place(const Scope& scope, ValueId id, int kernel) {
    const Type& type = scope.graph.type(id);
    const auto bytes = static_cast<double>(bytes_of_value(scope, type).count());
    places_.push_back({bytes, bytes / static_cast<double>(size_of(type.dtype)), kernel});
    return static_cast<int>(places_.size()) - 1;
  }

  int kernel(const Scope& scope, const GraphNode& node) {
    const OpClass op_class = is(node, "repeat") ? OpClass::movement : class_of(*node.op);
    kernels_.push_back({{.op_class = op_class, .op = node.op->name, .runs = scope.runs}, {}});
    return static_cast<int>(kernels_.size()) - 1;
  }
  CompiledKernel& told(int kernel) { return kernels_[static_cast<std::size_t>(kernel)].told; }

  // Marks `places` as read by a kernel, or by none: a loop, a collective, the caller.
  void read(int kernel, const Places& places) {
    for (const int one : places) {
      if (kernel != kNone && at(one).kernel == kernel) continue;
      at(one).read = true;
      if (kernel == kNone) continue;
      kernels_[static_cast<std::size_t>(kernel)].reads.insert(one);
      told(kernel).elements = std::max(told(kernel).elements, at(one).elements);
    }
  }

  void gives(Scope& scope, const GraphNode& node, int kernel) {
    for (const ValueId id : node.results) {
      scope.at(id) = {place(scope, id, kernel)};
      if (kernel != kNone) told(kernel).elements = std::max(told(kernel).elements, at(*scope.at(id).begin()).elements);
    }
  }

  void walk(Scope& scope) {
    for (const GraphNode& node : scope.graph.nodes()) {
      if (is(node, "repeat")) {
        walk_repeat(scope, node);
      } else if (is_collective(node)) {
        exchange(scope, node);
      } else if (one_of(node, {"attention", "attention_grad"})) {
        attend(scope, node);
      } else if (is_light(node)) {
        fuse(scope, node);
      } else {
        compute(scope, node);
      }
    }
  }

  static bool is_light(const GraphNode& node) {
    return node.op->view || node.op->elementwise || node.op->cheap ||
           one_of(node, {"transpose", "slice", "pad", "copy", "take_part", "concatenate", "broadcast", "iota",
                         "cross_entropy_grad", "dropout"});
  }

  void fuse(Scope& scope, const GraphNode& node) {
    const int ends = ended_by(scope, node);
    if (ends == kNone) {
      Places all;
      for (const ValueId id : node.operands) all.insert(scope.at(id).begin(), scope.at(id).end());
      for (const ValueId id : node.results) scope.at(id) = all;
      return;
    }
    for (const ValueId id : node.operands) read(ends, scope.at(id));
    gives(scope, node, ends);
  }

  // The kernel that `node` is fused into: the last one that makes an operand, because it has all operands.
  int ended_by(Scope& scope, const GraphNode& node) {
    int kernel = kNone;
    for (const ValueId id : node.operands) {
      const Places& places = scope.at(id);
      if (places.size() != 1 || scope.readers_of(id) != 1) continue;
      kernel = std::max(kernel, at(*places.begin()).kernel);
    }
    return kernel;
  }

  void compute(Scope& scope, const GraphNode& node) {
    // A sum of a kernel's result is part of that kernel.
    if (one_of(node, {"reduce_sum"})) {
      for (const ValueId id : node.operands) {
        const Places& places = scope.at(id);
        if (places.size() != 1 || at(*places.begin()).kernel == kNone) continue;
        return gives(scope, node, at(*places.begin()).kernel);
      }
    }
    const int kernel = this->kernel(scope, node);
    // Fetching rows of a table, and adding to them, costs no cycles: the cores only pass over the rows.
    if (is(node, "embedding")) {
      read(kNone, scope.at(node.operands[0]));
      read(kernel, scope.at(node.operands[1]));
      return gives(scope, node, kernel);
    }
    for (const ValueId id : node.operands) read(kernel, scope.at(id));
    if (is(node, "embedding_grad")) return gives(scope, node, kNone);
    if (is(node, "contract")) {
      const ProductDims dims = product_dims(scope.graph, node);
      told(kernel).flops = dims.filled_flops();
      told(kernel).results = static_cast<double>(dims.batch * dims.rows * dims.columns);
      told(kernel).streamed = dims.streamed_bytes(
          static_cast<std::int64_t>(size_of(scope.graph.type(node.operands[0]).dtype)), layout_.on_chip);
    }
    // The normalised value is computed again by its readers, from the norm's input.
    if (one_of(node, {"layer_norm", "rms_norm"})) {
      told(kernel).calls = is(node, "layer_norm") ? 2 : 1;
      gives(scope, node, kernel);
      scope.at(node.results[0]) = scope.at(node.operands[0]);
      return;
    }
    gives(scope, node, kernel);
    // The gradient of a norm first slices its input out of a stack. rotary splits a head's elements into halves and
    // concatenates them again.
    if (one_of(node, {"layer_norm_grad", "rms_norm_grad", "rotary"})) {
      told(kernel).calls *= 2;
      told(kernel).elements *= 2;
    }
  }

  // The cores only lay out the operand of an all_to_all before, and its result after.
  void exchange(Scope& scope, const GraphNode& node) {
    for (const ValueId id : node.operands) read(kNone, scope.at(id));
    gives(scope, node, kNone);
    if (!is(node, "all_to_all")) return;
    const Place& whole = at(*scope.at(node.results[0]).begin());
    CompiledKernel& lays_out = told(kernel(scope, node));
    lays_out.calls = 2;
    lays_out.elements = 2 * whole.elements;
    lays_out.bytes = 4 * whole.bytes;
  }

  void attend(Scope& scope, const GraphNode& node) {
    for (const ValueId id : node.operands) read(kNone, scope.at(id));
    gives(scope, node, kNone);
    const bool gradient = is(node, "attention_grad");
    const stablehlo::AttentionFlags flags(node.attrs, gradient ? 6 : 3);
    const Type &q = scope.graph.type(node.operands[0]), &k = scope.graph.type(node.operands[1]);
    const stablehlo::AttentionCut cut(flags, q, k, stablehlo::LowerOptions().attention_blocks);
    const auto head = static_cast<double>((cut.d + layout_.lanes - 1) / layout_.lanes * layout_.lanes);
    const auto heads = static_cast<double>(cut.batch * cut.heads);
    const double block_rows = heads * static_cast<double>(cut.r * cut.queries);
    const auto grain = static_cast<double>(size_of(q.dtype));
    const double groups = static_cast<double>(cut.groups()) * scope.runs;

    const int step = kernel(scope, node);
    CompiledKernel& pair = told(step);
    pair.runs = groups * static_cast<double>(cut.pairs());
    pair.scores = block_rows * static_cast<double>(cut.keys);
    pair.flops = 2 * pair.scores * head * (gradient ? 5 : 2);
    pair.elements = block_rows * head;  // of the accumulators, as they are written
    pair.calls = gradient ? 3 : 6;

    // A bias by distance is skewed into the block: rows of queries + keys elements are written, reshaped to one line,
    // cut, reshaped to rows again and cut. Its gradient also takes the reverse way, from a sum over the batch.
    if (flags.bias >= 0) {
      const auto rows = static_cast<double>(cut.heads * cut.r * cut.queries);
      CompiledKernel& skew = told(kernel(scope, node));
      skew.runs = told(step).runs;
      skew.calls = gradient ? 9 : 4;
      skew.elements = skew.calls * rows * static_cast<double>(cut.queries + cut.keys);
    }

    // The operands of a group are sliced out of the whole, and its results are put back.
    const double of_queries = heads * static_cast<double>(cut.r * cut.t) * head,
                 of_keys = heads * static_cast<double>(cut.s) * head;
    const auto all = static_cast<double>(cut.groups());
    // Initial zeros of a group's results; small ones never leave the chip.
    CompiledKernel& begins = told(kernel(scope, node));
    begins.runs = groups;
    (of_queries * grain <= kSmall * static_cast<double>(layout_.on_chip.count()) ? begins.elements : begins.filled) =
        gradient ? of_queries + 2 * of_keys : of_queries;
    if (cut.groups() > 1) {
      CompiledKernel& group = told(kernel(scope, node));
      group.runs = groups;
      group.calls = gradient ? 8 : 5;
      group.elements = gradient ? 4 * of_queries + 4 * of_keys : 3 * of_queries + 2 * of_keys;
      group.bytes = group.elements * grain;
      CompiledKernel& zeros = told(kernel(scope, node));  // and of all groups together
      zeros.filled = all * (gradient ? of_queries + 2 * of_keys : of_queries);
    }
    if (!gradient) return;
    CompiledKernel& laid_out = told(kernel(scope, node));  // saved by forward, laid out by heads again
    laid_out.calls = 3;
    laid_out.elements = all * (of_queries + 2 * of_keys);
    laid_out.bytes = 2 * laid_out.elements * grain;
  }

  // --- loops
  void walk_repeat(Scope& scope, const GraphNode& node) {
    const Graph& body = node.regions[0];
    const auto count = static_cast<double>(node.attrs.get_int("count"));
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries")),
               stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    Scope inner = scope_of(body, scope.runs * count, scope.depth + 1);
    for (std::size_t i = 0; i < body.inputs().size(); ++i) {
      const ValueId id = body.inputs()[i].value;
      read(kNone, scope.at(node.operands[i]));
      inner.at(id) = {place(inner, id, kNone)};
      if (i >= carries && i < carries + stacked) hoist(scope, inner, node.operands[i], id);
    }
    walk(inner);
    for (std::size_t o = 0; o < body.outputs().size(); ++o) leave(inner, body.outputs()[o], o < carries);
    for (std::size_t r = carries; r < node.results.size(); ++r) begin_stack(scope, node, r);
    gives(scope, node, kNone);
  }

  // A result of an iteration goes to the place of the next one's carry, or to its slice of a stack.
  void leave(Scope& inner, const GraphOutput& output, bool carry) {
    const Places& places = inner.at(output.value);
    const NodeId by = inner.graph.producer(output.value);
    const bool own = places.size() == 1 && at(*places.begin()).kernel != kNone;
    if (own) {
      Place& mine = at(*places.begin());
      if (carry || !mine.read) {
        mine.read = true;
      } else {
        told(mine.kernel).bytes += mine.bytes;  // written once more, into the stack
      }
      return;
    }
    if (!by.valid()) return;  // an input
    const GraphNode& node = inner.graph.node(by);
    if (is(node, "repeat")) return;
    if (carry && (is_collective(node) || one_of(node, {"attention", "attention_grad"}))) return;
    pass(inner, node, output.value);
  }

  // A kernel that only writes a value.
  void pass(Scope& scope, const GraphNode& node, ValueId id) {
    const int writes = kernel(scope, node);
    told(writes).op_class = OpClass::movement;
    told(writes).op = "copy";
    read(writes, scope.at(id));
    const int made = place(scope, id, writes);
    at(made).read = true;
    told(writes).elements = std::max(told(writes).elements, at(made).elements);
  }

  // Accumulated gradients start as zeros.
  void begin_stack(Scope& scope, const GraphNode& node, std::size_t result) {
    if (!node.attrs.get_bool("reverse")) return;
    const int zeros = kernel(scope, node);
    told(zeros).op_class = OpClass::movement;
    told(zeros).op = "zeros";
    const auto bytes = static_cast<double>(padded(scope.graph.type(node.results[result]), layout_).count());
    told(zeros).filled = bytes / static_cast<double>(size_of(scope.graph.type(node.results[result]).dtype));
  }

  // Casts all layers of a stacked parameter to the type of the products, before the loop.
  void hoist(Scope& scope, Scope& inner, ValueId stack, ValueId slice) {
    if (!layout_.hoists_casts) return;
    const GraphNode* cast = nullptr;
    for (const GraphNode& node : inner.graph.nodes()) {
      for (const ValueId id : node.operands) {
        if (id != slice) continue;
        if (!is(node, "cast")) return;
        cast = &node;
      }
    }
    if (cast == nullptr) return;
    const Type narrow = inner.graph.type(slice).with(inner.graph.type(cast->results[0]).dtype);
    const auto bytes = static_cast<double>(padded(narrow, layout_).count());
    at(*inner.at(slice).begin()).bytes = bytes;
    if (scope.at(stack).empty() || !hoisted_.insert(*scope.at(stack).begin()).second) return;
    const int all = kernel(scope, *cast);
    read(all, scope.at(stack));
    told(all).bytes += bytes * static_cast<double>(scope.graph.type(stack).size(0));
  }

  const Function& step_;
  const CompilerLayout& layout_;
  std::vector<Place> places_;
  std::vector<Kernel> kernels_;
  std::set<int> hoisted_;  // places of stacked parameters
};

}  // namespace

std::vector<CompiledKernel> compiled_kernels(const Function& step, const CompilerLayout& layout) {
  return Walk(step, layout).run();
}

}  // namespace systole
