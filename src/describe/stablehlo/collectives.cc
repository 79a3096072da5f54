// Collectives over device numbers. The compiler chooses the algorithm and the overlap; the Program's own choices
// (attributes `algorithm`, `overlap`) are not written. Sums of bf16 stay bf16 in transfer, as the Program counts them;
// how often they are rounded depends on the device.

#include "describe/program/collective_call.h"
#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {
namespace {

using Results = std::vector<Ssa>;

Results lower_collective(Builder& b, const NodeCall& call) {
  const CollectiveCall what = collective_call(call.graph, call.node);
  const Ssa& x = call.operands[0];
  if (what.parts == 1) return {x};
  if (what.kind == CollectiveKind::collective_permute) {
    if (what.by % what.parts == 0) return {x};
    return {b.collective_permute(x, call.around.permute_pairs(what.axis, what.by))};
  }
  const ReplicaGroups groups = call.around.groups(what.axis);
  const char* op = what.maximum ? "maximum" : "add";
  switch (what.kind) {
    case CollectiveKind::all_reduce: return {b.all_reduce(op, x, groups)};
    case CollectiveKind::reduce_scatter: return {b.reduce_scatter(op, x, what.dim, groups)};
    case CollectiveKind::all_gather: return {b.all_gather(x, what.dim, groups)};
    case CollectiveKind::all_to_all: return {b.all_to_all(x, what.split_dim, what.concat_dim, groups)};
    case CollectiveKind::collective_permute:
    case CollectiveKind::broadcast: break;
  }
  return {};
}

}  // namespace

std::vector<OpLowering> collective_lowerings() {
  return {{"all_reduce", lower_collective},
          {"all_gather", lower_collective},
          {"reduce_scatter", lower_collective},
          {"all_to_all", lower_collective},
          {"collective_permute", lower_collective}};
}

}  // namespace systole::stablehlo
