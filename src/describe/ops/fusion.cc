// fusion: a chain of elementwise ops, and the broadcasts that feed them, run as one kernel. The fusion pass builds it
// within the Target's rules. Every step rounds to its own type, so fusing never changes a bit; it saves the memory
// traffic of intermediate values.
//
// Constraints: C1 the region's inputs have the operands' types. C2 the region holds only elementwise ops and
// broadcasts.
// Work: FLOPs of the region; bytes of the distinct operands and the results, not of intermediate values.

#include "describe/ir/evaluate.h"
#include "describe/ir/work.h"
#include "describe/ops/list.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.regions.size() != 1) constraint("fusion_c1", "{} regions, not one chain", call.regions.size());
  const Graph& chain = call.regions[0];
  if (chain.inputs().size() != call.operands.size())
    constraint("fusion_c1", "the chain takes {} values, not {}", chain.inputs().size(), call.operands.size());
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Type& given = chain.type(chain.inputs()[i].value);
    if (!(given == call.operands[i]))
      constraint("fusion_c1", "chain input {} is {}, gets {}", i, to_string(given), to_string(call.operands[i]));
  }
  for (const GraphNode& node : chain.nodes()) {
    if (!node.op->elementwise && node.op->name != std::string_view("broadcast"))
      constraint("fusion_c2", "'{}' in a chain", node.op->name);
  }
  std::vector<Type> results;
  for (const GraphOutput& output : chain.outputs()) results.push_back(chain.type(output.value));
  return results;
}

}  // namespace

OpDef ops::fusion_op() {
  OpDef op;
  op.name = "fusion";
  op.summary = "a chain of elementwise ops and broadcasts in one kernel";
  op.signature = "(operands...) { chain } -> (results...)";
  op.infer = infer;
  op.work = [](const OpCall& call, std::span<const Type> results) {
    Work work = work_of(call.regions[0]);
    const Work moved = moves(call.operands, results);
    work.read = moved.read;
    work.written = moved.written;
    return work;
  };
  op.sharding = [](const OpCall& call) {  // built after partitioning: all replicated
    ShardingRule rule;
    for (const Type& type : call.operands) rule.operands.emplace_back(type.shape.size(), -1);
    for (const Type& type : infer(call)) rule.results.emplace_back(type.shape.size(), -1);
    return rule;
  };
  op.reference = [](const ReferenceCall& call) { evaluate_into(call.regions[0], call.operands, call.results); };
  return op;
}

}  // namespace systole
