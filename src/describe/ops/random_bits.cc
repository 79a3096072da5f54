#include "describe/ops/random_bits.h"

#include "describe/ops/index.h"
#include "describe/ops/ops.h"

namespace systole::ops {

void check_key(const OpCall& call, const char* label, int more) {
  if (call.num_operands() != 5 + more) {
    constraint(label, "{} takes x, seed, step, site, row and {} more, got {} operands", call.op.name, more,
               call.num_operands());
  }
  for (int i = 1; i < 5; ++i) {
    if (!(call.operand(i) == Type(DType::i64, {}))) {
      constraint(label, "{}: seed, step, site and row are i64[], operand {} is {}", call.op.name, i,
                 to_string(call.operand(i)));
    }
  }
}

PlaceBits place_bits(const ReferenceCall& call) {
  auto word = [&](std::size_t i) { return static_cast<std::uint64_t>(call.operands[i].integer(0)); };
  return {word(1), word(2), word(3)};
}

std::int64_t first_row(const ReferenceCall& call) {
  const std::int64_t row = call.operands[4].integer(0);
  if (row < 0) fail(error(ErrorKind::invalid, "row {} of a random op is negative", row));
  return row;
}

ShardingRule random_sharding(const OpCall& call) {
  const std::string dims = letters(call.operand(0).ndim());
  const bool placed = call.num_operands() > 5;
  const std::string whole = dims.empty() ? "" : dims.substr(placed ? 2 : 1);
  return sharding_rule(dims + ",,,," + (placed ? "," + dims.substr(1, 1) : "") + "->" + dims, "", whole,
                       dims.substr(0, 1));
}

Graph random_rewrite(const OpCall& local) {
  Graph graph(local.op.name);
  std::vector<Value> inputs;
  for (int i = 0; i < local.num_operands(); ++i)
    inputs.push_back(graph.input("operand" + std::to_string(i), local.operand(i)));
  const Value offset = graph.input("offset", Type(DType::i64, {}));
  inputs[4] = add(inputs[4], offset);
  graph.output("y", graph.apply(local.op, inputs, local.attrs)[0]);
  return graph;
}

}  // namespace systole::ops
