#include "execute/runtime/flatten.h"

#include "describe/ir/rewrite.h"
#include "describe/program/collective_call.h"
#include "describe/program/memory.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

using Offsets = std::span<const std::int64_t>;

class Flattener {
 public:
  explicit Flattener(std::int64_t scratch) : scratch_(scratch) {}

  // Runs a graph or one iteration of a body, without the work done ahead. `slot`: which of the two slots holds the
  // values that were computed ahead for it.
  void run(const Graph& graph, const Placement& placement, Offsets inputs, Offsets outputs, std::int64_t slot = 0) {
    add(graph, placement, inputs, outputs, slot, false);
  }

  std::vector<KernelCall> take() { return std::move(calls_); }

 private:
  void add(const Graph& graph, const Placement& placement, Offsets inputs, Offsets outputs, std::int64_t slot,
           bool ahead) {
    const auto resolve = [&](const Location& location) -> std::int64_t {
      switch (location.kind) {
        case Location::Kind::input: return inputs[static_cast<std::size_t>(location.index)];
        case Location::Kind::output: return outputs[static_cast<std::size_t>(location.index)];
        case Location::Kind::scratch: return scratch_ + location.offset;
        case Location::Kind::none: break;
      }
      CHECK(false, "a value of '{}' has no place", graph.name());
      return -1;
    };
    const auto place = [&](ValueId id) {
      const std::int64_t offset = resolve(placement.values[static_cast<std::size_t>(id.index)]);
      if (slot == 0 || !has_twin(graph, id)) return offset;
      return offset + slot * twin_stride(graph.type(storage_of(graph, id)).bytes());
    };
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const GraphNode& node = graph.nodes()[n];
      const Overlap overlap = overlap_of(node);
      if (node.op->view || (overlap == Overlap::ahead) != ahead) continue;
      const Placement::Inner& inner = placement.nodes[n];
      KernelCall call{&graph, &node, {}, {}, -1, inner.workspace_bytes, layers_};
      call.begins = overlap != Overlap::none && is_collective(node) && collective_call(graph, node).parts > 1;
      for (const ValueId id : node.operands) call.operands.push_back(place(id));
      for (const ValueId id : node.results) call.results.push_back(place(id));
      if (inner.workspace_bytes.count() > 0) call.workspace = resolve(inner.workspace);
      if (is(node, "repeat")) {
        unroll(call, inner, resolve);
      } else {
        calls_.push_back(std::move(call));
      }
    }
  }

  // The last iteration writes a carry to its result, the one before to its twin, and so on alternately; iteration 0
  // reads the operand. Work done ahead reads no carries.
  template <typename Resolve>
  void unroll(const KernelCall& repeat, const Placement::Inner& inner, const Resolve& resolve) {
    const GraphNode& node = *repeat.node;
    const Graph& body = node.regions[0];
    const std::int64_t count = node.attrs.get_int("count");
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries")),
               stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    const bool ahead = std::any_of(body.nodes().begin(), body.nodes().end(),
                                   [](const GraphNode& each) { return overlap_of(each) == Overlap::ahead; });
    std::vector<std::int64_t> inputs = repeat.operands, outputs = repeat.results;
    const auto slices_of = [&](std::int64_t i) {
      const std::int64_t index = node.attrs.get_bool("reverse") ? count - 1 - i : i;
      const auto slice = [&](std::int64_t base, ValueId id) { return base + index * body.type(id).bytes().count(); };
      for (std::size_t s = carries; s < carries + stacked; ++s)
        inputs[s] = slice(repeat.operands[s], body.inputs()[s].value);
      for (std::size_t o = carries; o < outputs.size(); ++o)
        outputs[o] = slice(repeat.results[o], body.outputs()[o].value);
      return index;
    };
    const auto go_ahead = [&](std::int64_t i) {
      layers_.push_back(slices_of(i));
      add(body, inner.regions[0], inputs, outputs, i % 2, true);
      layers_.pop_back();
    };
    if (ahead) go_ahead(0);
    for (std::int64_t i = 0; i < count; ++i) {
      if (ahead && i + 1 < count) go_ahead(i + 1);
      const std::int64_t index = slices_of(i);
      for (std::size_t c = 0; c < carries; ++c) {
        if (i > 0) inputs[c] = outputs[c];
        outputs[c] = (count - 1 - i) % 2 == 0 ? repeat.results[c] : resolve(inner.carry_twins[c]);
      }
      layers_.push_back(index);
      run(body, inner.regions[0], inputs, outputs, i % 2);
      layers_.pop_back();
    }
  }

  std::int64_t scratch_;
  std::vector<std::int64_t> layers_;
  std::vector<KernelCall> calls_;
};

struct Range {
  std::int64_t from = 0, to = 0;
  bool meets(const Range& other) const { return from < other.to && other.from < to; }
};

// Tracks which calls must wait for which begun collectives.
class Waits {
 public:
  explicit Waits(std::vector<KernelCall>& calls) : calls_(calls) {}

  void run() {
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      KernelCall& call = calls_[c];
      if (underway_.empty() && !call.begins) continue;
      const Touched touched = touched_by(call);
      if (call.begins) {
        underway_.push_back({static_cast<int>(c), touched});
        continue;
      }
      if (is_collective(*call.node)) {
        underway_.clear();  // it ends after all of them
        continue;
      }
      const auto last = std::find_if(underway_.rbegin(), underway_.rend(), [&](const Underway& u) {
        return any_meet(touched.read, u.touched.written) || any_meet(touched.written, u.touched.written) ||
               any_meet(touched.written, u.touched.read);
      });
      if (last == underway_.rend()) continue;
      call.after = last->call;
      underway_.erase(underway_.begin(), last.base());
    }
  }

 private:
  struct Touched {
    std::vector<Range> read, written;
  };
  struct Underway {
    int call;
    Touched touched;
  };

  static Touched touched_by(const KernelCall& call) {
    Touched touched;
    const auto range = [&](std::int64_t at, ValueId id) {
      return Range{at, at + call.graph->type(id).bytes().count()};
    };
    for (std::size_t i = 0; i < call.operands.size(); ++i)
      touched.read.push_back(range(call.operands[i], call.node->operands[i]));
    for (std::size_t i = 0; i < call.results.size(); ++i)
      touched.written.push_back(range(call.results[i], call.node->results[i]));
    if (call.workspace >= 0) touched.written.push_back({call.workspace, call.workspace + call.workspace_bytes.count()});
    return touched;
  }

  static bool any_meet(const std::vector<Range>& a, const std::vector<Range>& b) {
    return std::any_of(a.begin(), a.end(), [&](const Range& x) {
      return std::any_of(b.begin(), b.end(), [&](const Range& y) { return x.meets(y); });
    });
  }

  std::vector<KernelCall>& calls_;
  std::vector<Underway> underway_;
};

}  // namespace

std::vector<KernelCall> flatten(const Function& function, const Addresses& addresses) {
  const auto offsets = [](std::span<const SlotAddress> slots) {
    std::vector<std::int64_t> list;
    for (const SlotAddress& slot : slots) list.push_back(slot.offset);
    return list;
  };
  Flattener flattener(addresses.scratch);
  flattener.run(function.graph, function.placement, offsets(addresses.inputs), offsets(addresses.outputs));
  std::vector<KernelCall> calls = flattener.take();
  Waits(calls).run();
  return calls;
}

}  // namespace systole
