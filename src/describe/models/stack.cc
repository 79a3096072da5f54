#include "describe/models/stack.h"

namespace systole {

std::vector<Stack> Stack::of_period(Layers& layers, const Parameters& outer, std::span<const Parameter> parameters,
                                    const std::string& prefix, const StackDropout& dropout, std::int64_t first_layer,
                                    std::int64_t period) {
  std::vector<Stack> stacks;
  for (std::int64_t j = 0; j < period; ++j) {
    Stack stack;
    stack.dropout_ = dropout;
    const std::string own = stack_name(prefix, first_layer + j, period), as = j == 0 ? "" : fmt::format("{}.", j);
    std::int64_t count = 0;
    for (const Parameter& p : parameters) {
      if (!p.name.starts_with(own)) continue;
      count = p.type.size(0);
      const std::string name = p.name.substr(own.size());
      stack.slices_.emplace(name, layers.slice(as + name, outer[p.name]));
    }
    if (dropout.key) {
      Value numbers = iota(*dropout.key->seed.graph, Type(DType::i64, {count}, {"layer"}), 0);
      if (period > 1) numbers = scale(numbers, static_cast<double>(period));
      if (first_layer + j > 0) numbers = add(numbers, full_like(numbers, static_cast<double>(first_layer + j)));
      stack.layer_ = layers.slice(as + "layer", numbers);
    }
    stacks.push_back(std::move(stack));
  }
  if (!dropout.key) return stacks;
  const Value seed = layers.share("seed", dropout.key->seed), step = layers.share("step", dropout.key->step);
  const DropoutKey key{seed, step, layers.share("row", dropout.key->row)};
  for (Stack& stack : stacks) stack.key_ = key;
  return stacks;
}

Stack::Stack(Layers& layers, const Parameters& outer, std::span<const Parameter> parameters, const std::string& prefix,
             const StackDropout& dropout, std::int64_t first_layer)
    : Stack(std::move(of_period(layers, outer, parameters, prefix, dropout, first_layer, 1)[0])) {}

Value Stack::project(Value x, const std::string& name, const std::string& in, const std::string& out) const {
  const Value y = contract(x, slices_.at(name), "bs" + in + "," + in + out + "->bs" + out);
  const auto bias = slices_.find(name + "_bias");
  return bias == slices_.end() ? y : add_bias(y, bias->second);
}

Value Stack::drop(Value x, std::int64_t site) const {
  if (!key_) return x;
  const Type scalar(DType::i64, {});
  const auto number = [&](std::int64_t n) { return constant(*x.graph, scalar, static_cast<double>(n)); };
  const Value at = add(mul(*layer_, number(dropout_.sites)), number(dropout_.first + site));
  return drop_at(x, *key_, at, dropout_.rate);
}

Value add_bias(Value x, Value bias) {
  std::vector<int> dims;
  for (int i = 0; i < bias.type().ndim(); ++i) dims.push_back(x.type().ndim() - bias.type().ndim() + i);
  return add(x, broadcast(bias, x.type().with(bias.dtype()), dims));
}

}  // namespace systole
