#include "predict/prove/compiler_comparison.h"

#include <map>
#include <set>

#include "describe/program/collectives_of.h"

namespace systole::prove {
namespace {

Bytes local_bytes(const stablehlo::ModulePort& port) { return bytes_of(port.local.dtype, port.local.shape); }

CompiledMemory memory_of(const Function& step, const stablehlo::Module& module) {
  CompiledMemory memory;
  for (const stablehlo::ModulePort& argument : module.arguments) memory.arguments += local_bytes(argument);
  for (const stablehlo::ModulePort& result : module.results) memory.outputs += local_bytes(result);
  for (const Alias& alias : module.aliases)
    memory.aliased += local_bytes(module.results[static_cast<std::size_t>(alias.output)]);
  memory.temporaries = step.scratch;
  return memory;
}

// The whole value, as in CompiledCollective.
Bytes payload(const CollectiveCall& call) {
  return bytes_of(call.dtype, call.shape) * (call.kind == CollectiveKind::all_gather ? call.parts : 1);
}

}  // namespace

CompilerComparison beside(const Program& program, const Function& step, const stablehlo::Module& module,
                          const Proof& proof) {
  CompilerComparison result;
  result.ours = memory_of(step, module);
  result.arena = program.arena;
  std::map<std::string, CollectivesBeside> kinds;
  std::set<std::pair<std::string, std::int64_t>> planned;
  for (const CollectiveUse& use : collectives_of(step.graph)) {
    if (use.call.parts == 1) continue;
    const std::string kind = name_of(use.call.kind);
    const Bytes bytes = payload(use.call);
    kinds[kind].ours += use.times;
    kinds[kind].our_bytes += bytes * use.times;
    planned.emplace(kind, bytes.count());
  }
  for (const CompiledCollective& collective : proof.executed.collectives) {
    kinds[collective.kind].theirs += collective.executed;
    kinds[collective.kind].their_bytes += collective.all();
  }
  for (const CompiledCollective& collective : proof.executed.collectives) {
    const CollectivesBeside& kind = kinds[collective.kind];
    if (kind.our_bytes != kind.their_bytes && planned.count({collective.kind, collective.bytes.count()}) == 0)
      result.unplanned.push_back(collective);
  }
  for (auto& [name, kind] : kinds) {
    kind.kind = name;
    result.collectives.push_back(std::move(kind));
  }
  return result;
}

}  // namespace systole::prove
