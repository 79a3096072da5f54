#include "execute/backends/cpu/chain_program.h"

#include <algorithm>
#include <map>

namespace systole::cpu {
namespace {

const std::map<std::string_view, ChainOp>& chain_ops() {
  static const std::map<std::string_view, ChainOp> ops = {{"neg", ChainOp::neg},
                                                          {"exp", ChainOp::exp},
                                                          {"log", ChainOp::log},
                                                          {"tanh", ChainOp::tanh},
                                                          {"sigmoid", ChainOp::sigmoid},
                                                          {"gelu", ChainOp::gelu},
                                                          {"gelu_tanh", ChainOp::gelu_tanh},
                                                          {"silu", ChainOp::silu},
                                                          {"relu", ChainOp::relu},
                                                          {"rsqrt", ChainOp::rsqrt},
                                                          {"sqrt", ChainOp::sqrt},
                                                          {"is_finite", ChainOp::is_finite},
                                                          {"add", ChainOp::add},
                                                          {"sub", ChainOp::sub},
                                                          {"mul", ChainOp::mul},
                                                          {"div", ChainOp::div},
                                                          {"max", ChainOp::max},
                                                          {"min", ChainOp::min},
                                                          {"logical_and", ChainOp::logical_and},
                                                          {"select", ChainOp::select},
                                                          {"gelu_grad", ChainOp::gelu_grad},
                                                          {"gelu_tanh_grad", ChainOp::gelu_tanh_grad},
                                                          {"silu_grad", ChainOp::silu_grad},
                                                          {"cast", ChainOp::cast},
                                                          {"constant", ChainOp::constant},
                                                          {"iota", ChainOp::iota}};
  return ops;
}

ChainOp compare_op(const std::string& kind) {
  if (kind == "lt") return ChainOp::lt;
  if (kind == "le") return ChainOp::le;
  if (kind == "gt") return ChainOp::gt;
  if (kind == "ge") return ChainOp::ge;
  return kind == "eq" ? ChainOp::eq : ChainOp::ne;
}

std::int64_t product(const Shape& shape, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < to; ++i) n *= shape[i];
  return n;
}

// The pattern of an operand whose dims are dims[i] of `to`. Nothing if they are not adjacent.
std::optional<IndexPattern> pattern_of(const Type& from, const Type& to, const Ints& dims) {
  if (from.num_elements() == 1) return IndexPattern{1, 1};
  if (from.num_elements() == to.num_elements()) return IndexPattern{1, 0};
  std::int64_t last = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (from.shape[i] == 1) continue;
    for (std::int64_t between = last + 1; last >= 0 && between < dims[i]; ++between) {
      if (to.shape[static_cast<std::size_t>(between)] != 1) return std::nullopt;
    }
    last = dims[i];
  }
  return IndexPattern{product(to.shape, static_cast<std::size_t>(last) + 1, to.shape.size()), from.num_elements()};
}

// Builds steps over an unlimited number of values; registers are assigned afterwards.
class Builder {
 public:
  explicit Builder(std::int64_t n) { program_.n = n; }

  struct Step {
    ChainStep step;
    int value = -1;             // the value it makes
    std::vector<int> operands;  // values
  };

  int load(int slot, Elem elem, IndexPattern pattern) {
    const auto key = std::tuple(slot, pattern.inner, pattern.period);
    const auto found = loads_.find(key);
    if (found != loads_.end()) return found->second;
    ChainStep step;
    step.op = ChainOp::load;
    step.elem = elem;
    step.slot = slot;
    step.pattern = pattern;
    return loads_[key] = add(step, {});
  }

  int add(ChainStep step, std::vector<int> operands) {
    const int value = static_cast<int>(elems_.size());
    elems_.push_back(step.elem);
    steps_.push_back({step, value, std::move(operands)});
    return value;
  }

  void store(int slot, int value) {
    ChainStep step;
    step.op = ChainOp::store;
    step.elem = elems_[static_cast<std::size_t>(value)];
    step.slot = slot;
    stores_.push_back({step, -1, {value}});
  }

  int apply(const GraphNode& node, const Graph& graph, const std::vector<int>& operands) {
    const Type& type = graph.type(node.results[0]);
    ChainStep step;
    step.op = node.op->name == std::string_view("compare") ? compare_op(node.attrs.get_string("kind"))
                                                           : chain_ops().at(node.op->name);
    step.elem = elem(type);
    if (!node.operands.empty()) step.from = elem(graph.type(node.operands[0]));
    if (step.op == ChainOp::constant) step.value = node.attrs.get_double("value");
    if (step.op == ChainOp::iota) {
      const auto dim = static_cast<std::size_t>(node.attrs.get_int("dim"));
      step.pattern = {product(type.shape, dim + 1, type.shape.size()), type.shape[dim]};
      if (step.pattern.period == 0) step.pattern.period = 1;  // an empty dim: nothing is counted
    }
    return add(step, operands);
  }

  ChainProgram finish() {
    for (const Step& store : stores_) steps_.push_back(store);
    std::vector<std::size_t> last(elems_.size(), 0);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      last[static_cast<std::size_t>(std::max(steps_[i].value, 0))] =
          std::max(last[static_cast<std::size_t>(std::max(steps_[i].value, 0))], steps_[i].value >= 0 ? i : 0);
      for (const int v : steps_[i].operands) last[static_cast<std::size_t>(v)] = i;
    }
    std::vector<int> registers(elems_.size(), -1);
    std::vector<bool> narrow(kMaxChainRegisters, false), wide(kMaxChainWideRegisters, false);
    const auto pool = [&](int value) -> std::vector<bool>& {
      return elems_[static_cast<std::size_t>(value)] == Elem::i64 ? wide : narrow;
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      const auto register_of = [&](std::size_t k) {
        return static_cast<std::uint8_t>(
            k < step.operands.size() ? registers[static_cast<std::size_t>(step.operands[k])] : 0);
      };
      step.step.a = register_of(0);
      step.step.b = register_of(1);
      step.step.c = register_of(2);
      // The result may reuse an operand's register: every step reads an element before it writes it.
      for (const int v : step.operands) {
        if (last[static_cast<std::size_t>(v)] == i)
          pool(v)[static_cast<std::size_t>(registers[static_cast<std::size_t>(v)])] = false;
      }
      if (step.value >= 0) {
        std::vector<bool>& free = pool(step.value);
        const auto found = std::find(free.begin(), free.end(), false);
        if (found == free.end()) {
          program_.refusal = fmt::format("a chain needs more than {} values at once", free.size());
          return std::move(program_);
        }
        registers[static_cast<std::size_t>(step.value)] = static_cast<int>(found - free.begin());
        *found = last[static_cast<std::size_t>(step.value)] > i;
        step.step.dst = static_cast<std::uint8_t>(registers[static_cast<std::size_t>(step.value)]);
      }
      program_.steps.push_back(step.step);
    }
    return std::move(program_);
  }

 private:
  std::vector<Step> steps_, stores_;
  std::vector<Elem> elems_;  // by value
  std::map<std::tuple<int, std::int64_t, std::int64_t>, int> loads_;
  ChainProgram program_;
};

}  // namespace

ChainProgram chain_of_region(const Graph& region) {
  const Type& domain = region.type(region.outputs()[0].value);
  const auto num_inputs = static_cast<int>(region.inputs().size());
  if (num_inputs + static_cast<int>(region.outputs().size()) > kMaxChainSlots)
    return {{}, 0, fmt::format("a chain of more than {} tensors", kMaxChainSlots)};
  Builder builder(domain.num_elements());
  std::map<int, int> slots, made;  // by value of the region
  for (int i = 0; i < num_inputs; ++i) slots[region.inputs()[static_cast<std::size_t>(i)].value.index] = i;
  const auto value_of = [&](ValueId id) {
    const auto slot = slots.find(id.index);
    return slot == slots.end() ? made.at(id.index) : builder.load(slot->second, elem(region.type(id)), {});
  };
  for (const GraphNode& node : region.nodes()) {
    const Type& type = region.type(node.results[0]);
    if (type.shape != domain.shape)
      return {{}, 0, fmt::format("{} of {} in a chain over {}", node.op->name, to_string(type), to_string(domain))};
    if (node.op->name == std::string_view("broadcast")) {
      const auto slot = slots.find(node.operands[0].index);
      if (slot == slots.end()) return {{}, 0, "a broadcast of a chain's own value"};
      const auto pattern = pattern_of(region.type(node.operands[0]), type, node.attrs.get_ints("dims"));
      if (!pattern)
        return {{},
                0,
                fmt::format("a broadcast of {} to {} whose dims do not lie together",
                            to_string(region.type(node.operands[0])), to_string(type))};
      made[node.results[0].index] = builder.load(slot->second, elem(type), *pattern);
      continue;
    }
    std::vector<int> operands;
    for (const ValueId id : node.operands) operands.push_back(value_of(id));
    made[node.results[0].index] = builder.apply(node, region, operands);
  }
  for (std::size_t o = 0; o < region.outputs().size(); ++o)
    builder.store(num_inputs + static_cast<int>(o), value_of(region.outputs()[o].value));
  return builder.finish();
}

ChainProgram chain_of_node(const NodeInfo& info) {
  Builder builder(info.result(0).num_elements());
  std::vector<int> operands;
  for (int i = 0; i < info.num_operands(); ++i) operands.push_back(builder.load(i, elem(info.operand(i)), {}));
  builder.store(info.num_operands(), builder.apply(info.node, info.graph, operands));
  return builder.finish();
}

}  // namespace systole::cpu
