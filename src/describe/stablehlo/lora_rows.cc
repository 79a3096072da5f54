// lora_rows (describe/ops/lora_rows.cc): the adapters of the entries are gathered; two products of batches follow.

#include <array>

#include "describe/stablehlo/indices.h"
#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {
namespace {

std::vector<Ssa> lora_rows(Builder& b, const NodeCall& call) {
  const Ssa &y = call.operands[1], &a = call.operands[2];
  const std::int64_t adapters = a.type.size(0), rank = a.type.size(1);
  if (y.type.num_elements() == 0 || a.type.size(2) == 0 || adapters * rank == 0) return {y};
  const Ssa x = b.reshape(call.operands[0], {y.type.size(0), y.type.size(1), a.type.size(2)});
  const Ssa adapter = b.binary("subtract", call.operands[4], whole(b, call.operands[4], 1));
  const Ssa ids = clamped(b, adapter, adapters);
  const auto gathered = [&](const Ssa& all) {
    const std::int64_t width = all.type.size(2);
    return b.reshape(b.gather_rows(b.reshape(all, {adapters, rank * width}), ids), {x.type.size(0), rank, width});
  };
  const Ssa low = b.dot(x, gathered(a), {{0}, {0}, {2}, {2}}, DType::f32);
  const Ssa high = b.dot(low, gathered(call.operands[3]), {{0}, {0}, {2}, {1}}, DType::f32);
  const Type flags(DType::boolean, y.type.shape);
  const Ssa known = b.broadcast(within(b, adapter, adapters), flags, std::array{0});
  return {b.select(known, b.binary("add", y, high), y)};
}

}  // namespace

std::vector<OpLowering> lora_lowerings() { return {{"lora_rows", lora_rows}}; }

}  // namespace systole::stablehlo
