#include "execute/runtime/flatten.h"

#include "describe/graph/passes/rewrite.h"

namespace systole {
namespace {

class Flattener {
 public:
  explicit Flattener(std::int64_t scratch) : scratch_(scratch) {}

  void run(const Graph& graph, const Placement& placement, std::span<const std::int64_t> inputs,
           std::span<const std::int64_t> outputs) {
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
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const GraphNode& node = graph.nodes()[n];
      if (node.op->view) continue;
      const Placement::Inner& inner = placement.nodes[n];
      KernelCall call{&graph, &node, {}, {}, -1, inner.workspace_bytes, layers_};
      for (const ValueId id : node.operands)
        call.operands.push_back(resolve(placement.values[static_cast<std::size_t>(id.index)]));
      for (const ValueId id : node.results)
        call.results.push_back(resolve(placement.values[static_cast<std::size_t>(id.index)]));
      if (inner.workspace_bytes.count() > 0) call.workspace = resolve(inner.workspace);
      if (is(node, "repeat")) {
        unroll(call, inner, resolve);
      } else {
        calls_.push_back(std::move(call));
      }
    }
  }

  std::vector<KernelCall> take() { return std::move(calls_); }

 private:
  // The last iteration writes a carry to its result, the one before to its twin, and so on back; iteration 0 reads the
  // operand.
  template <typename Resolve>
  void unroll(const KernelCall& repeat, const Placement::Inner& inner, const Resolve& resolve) {
    const GraphNode& node = *repeat.node;
    const Graph& body = node.regions[0];
    const std::int64_t count = node.attrs.get_int("count");
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries")),
               stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    std::vector<std::int64_t> inputs = repeat.operands, outputs = repeat.results;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = node.attrs.get_bool("reverse") ? count - 1 - i : i;
      const auto slice = [&](std::int64_t base, ValueId id) { return base + index * body.type(id).bytes().count(); };
      for (std::size_t c = 0; c < carries; ++c) {
        if (i > 0) inputs[c] = outputs[c];
        outputs[c] = (count - 1 - i) % 2 == 0 ? repeat.results[c] : resolve(inner.carry_twins[c]);
      }
      for (std::size_t s = carries; s < carries + stacked; ++s)
        inputs[s] = slice(repeat.operands[s], body.inputs()[s].value);
      for (std::size_t o = carries; o < outputs.size(); ++o)
        outputs[o] = slice(repeat.results[o], body.outputs()[o].value);
      layers_.push_back(index);
      run(body, inner.regions[0], inputs, outputs);
      layers_.pop_back();
    }
  }

  std::int64_t scratch_;
  std::vector<std::int64_t> layers_;
  std::vector<KernelCall> calls_;
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
  return flattener.take();
}

}  // namespace systole
