// repeat: a loop whose body slices inputs and writes outputs by the index, or a sequence of bodies.
// fusion: its ops in place of the node; the compiler decides what to fuse.

#include <array>

#include "describe/ir/op.h"
#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {
namespace {

using Results = std::vector<Ssa>;

struct Repeated {
  const NodeCall& call;
  std::int64_t count = call.node.attrs.get_int("count");
  std::size_t carries = static_cast<std::size_t>(call.node.attrs.get_int("carries"));
  std::size_t stacked = static_cast<std::size_t>(call.node.attrs.get_int("stacked"));
  bool reverse = call.node.attrs.get_bool("reverse");

  const Graph& body() const { return call.node.regions[0]; }
  std::span<const Ssa> carried() const { return call.operands.first(carries); }
  std::span<const Ssa> stacks() const { return call.operands.subspan(carries, stacked); }

  // Runs the body on carries and slices. Returns its carries and outputs.
  Results run(Builder& b, std::span<const Ssa> now, std::span<const Ssa> slices) const {
    std::vector<Ssa> inputs(now.begin(), now.end());
    inputs.insert(inputs.end(), slices.begin(), slices.end());
    const std::span<const Ssa> shared = call.operands.subspan(carries + stacked);
    inputs.insert(inputs.end(), shared.begin(), shared.end());
    return call.around.region(b, body(), inputs);
  }
};

Shape one_of(const Type& stack) {
  Shape shape = stack.shape;
  shape[0] = 1;
  return shape;
}

Results as_loop(Builder& b, const Repeated& r) {
  std::vector<Ssa> carries(r.carried().begin(), r.carried().end());
  for (std::size_t i = r.carries; i < r.call.results.size(); ++i) carries.push_back(b.constant(r.call.results[i], 0));
  return b.loop(
      r.count, carries,
      [&](Builder& in, const Ssa& index, std::span<const Ssa> now) {
        const Ssa zero = in.integer(index.type, 0);
        const auto at = [&](const Type& stack) {
          std::vector<Ssa> start(stack.shape.size(), zero);
          start[0] = index;
          return start;
        };
        std::vector<Ssa> slices;
        for (const Ssa& stack : r.stacks()) {
          const Ssa one = in.dynamic_slice(stack, at(stack.type), one_of(stack.type));
          slices.push_back(in.reshape(one, slice_type(stack.type).shape));
        }
        std::vector<Ssa> next = r.run(in, now.first(r.carries), slices);
        for (std::size_t i = r.carries; i < next.size(); ++i) {
          const Type& stack = now[i].type;
          next[i] = in.dynamic_update(now[i], in.reshape(next[i], one_of(stack)), at(stack));
        }
        return next;
      },
      r.reverse);
}

Results unrolled(Builder& b, const Repeated& r) {
  std::vector<Ssa> now(r.carried().begin(), r.carried().end());
  std::vector<std::vector<Ssa>> outputs(r.call.results.size() - r.carries,
                                        std::vector<Ssa>(static_cast<std::size_t>(r.count)));
  for (std::int64_t step = 0; step < r.count; ++step) {
    const std::int64_t index = r.reverse ? r.count - 1 - step : step;
    std::vector<Ssa> slices;
    for (const Ssa& stack : r.stacks()) {
      Shape start(stack.type.shape.size(), 0), limit = stack.type.shape;
      start[0] = index;
      limit[0] = index + 1;
      slices.push_back(b.reshape(b.slice(stack, start, limit), slice_type(stack.type).shape));
    }
    const Results next = r.run(b, now, slices);
    now.assign(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(r.carries));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i][static_cast<std::size_t>(index)] =
          b.reshape(next[r.carries + i], one_of(r.call.results[r.carries + i]));
  }
  for (const std::vector<Ssa>& parts : outputs) now.push_back(b.concatenate(parts, 0));
  return now;
}

Results lower_repeat(Builder& b, const NodeCall& call) {
  const Repeated repeated{call};
  return call.around.options().unroll || repeated.count == 1 ? unrolled(b, repeated) : as_loop(b, repeated);
}

Results lower_fusion(Builder& b, const NodeCall& call) {
  return call.around.region(b, call.node.regions[0], call.operands);
}

}  // namespace

std::vector<OpLowering> region_lowerings() { return {{"repeat", lower_repeat}, {"fusion", lower_fusion}}; }

}  // namespace systole::stablehlo
