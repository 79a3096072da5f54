#pragma once
// A Program's training step beside what the vendor's compiler made of it: memory by kind, collectives by kind.

#include <string>
#include <vector>

#include "describe/graph/program.h"
#include "describe/stablehlo/module.h"
#include "predict/prove/proof.h"

namespace systole::prove {

struct CollectivesBeside {
  std::string kind;
  std::int64_t ours = 0, theirs = 0;  // in one run of the step
  Bytes our_bytes, their_bytes;       // of the whole values, all together
  bool operator==(const CollectivesBeside&) const = default;
};

struct Beside {
  CompiledMemory ours;                         // as the Program plans it: arguments, results, and the step's scratch
  Bytes arena;                                 // of the whole Program: its other schedules too
  std::vector<CollectivesBeside> collectives;  // kinds that either has, by name
  // Of kinds that carry other bytes than planned, those of the compiler's whose size no planned one has: a compiler may
  // put several that were planned into one.
  std::vector<CompiledCollective> unplanned;
};

// `step`: the function of `program` that `module` was lowered from.
Beside beside(const Program& program, const Function& step, const stablehlo::Module& module, const Proof& proof);

}  // namespace systole::prove
