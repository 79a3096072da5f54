#include "describe/ir/op.h"

#include <algorithm>
#include <cstring>

namespace systole {

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  transcendentals += other.transcendentals;
  model_flops += other.model_flops;
  read += other.read;
  written += other.written;
  return *this;
}

Work Work::operator*(std::int64_t times) const {
  return {flops * times, transcendentals * times, model_flops * times, read * times, written * times};
}

Work moves(std::span<const Type> operands, std::span<const Type> results) {
  Work work;
  for (const Type& type : operands) work.read += type.bytes();
  for (const Type& type : results) work.written += type.bytes();
  return work;
}

std::int64_t TensorView::integer(std::int64_t index) const {
  if (type.dtype == DType::i64 || type.dtype == DType::u64) {
    std::int64_t value;
    std::memcpy(&value, data + index * 8, 8);
    return value;
  }
  return static_cast<std::int64_t>(raw(index));
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : all_ops()) {
    if (name == op->name) return op;
  }
  return nullptr;
}

const OpDef& op_named(std::string_view name) {
  if (const OpDef* op = find_op(name)) return *op;
  fail(error(ErrorKind::not_found, "no op is named '{}'", name).hinted("docs/reference/ops.md lists them"));
}

ShardingRule sharding_rule(std::string_view notation, std::string_view reduced, std::string_view replicated,
                           std::string_view local) {
  ShardingRule rule;
  rule.factors.reserve(notation.size() / 2);
  auto factor_of = [&](char letter) {
    if (letter == '.') return -1;
    const std::string name(1, letter);
    for (std::size_t i = 0; i < rule.factors.size(); ++i) {
      if (rule.factors[i].name == name) return static_cast<int>(i);
    }
    using Kind = ShardingRule::Kind;
    const Kind kind = reduced.find(letter) != reduced.npos         ? Kind::reduction
                      : replicated.find(letter) != replicated.npos ? Kind::replicated
                      : local.find(letter) != local.npos           ? Kind::local
                                                                   : Kind::pass;
    rule.factors.push_back({name, kind});
    return static_cast<int>(rule.factors.size()) - 1;
  };
  auto read_side = [&](std::string_view side, std::vector<std::vector<int>>& into) {
    into.reserve(4);
    into.emplace_back().reserve(side.size());
    for (const char c : side) {
      if (c == ',') {
        into.emplace_back().reserve(side.size());
      } else {
        into.back().push_back(factor_of(c));
      }
    }
  };
  const std::size_t arrow = notation.find("->");
  CHECK(arrow != notation.npos, "the sharding rule '{}' has no arrow", notation);
  read_side(notation.substr(0, arrow), rule.operands);
  read_side(notation.substr(arrow + 2), rule.results);
  return rule;
}

ValueId storage_of(const Graph& graph, ValueId id) {
  while (graph.producer(id).valid() && graph.node(graph.producer(id)).op->view)
    id = graph.node(graph.producer(id)).operands[0];
  return id;
}

}  // namespace systole
