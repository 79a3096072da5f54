#pragma once
// Compares a Program's training step with what the vendor's compiler made of it: memory by kind, collectives by kind.

#include <string>
#include <vector>

#include "describe/program/program.h"
#include "describe/stablehlo/module.h"
#include "predict/prove/proof.h"

namespace systole::prove {

struct CollectivesBeside {
  std::string kind;
  std::int64_t ours = 0, theirs = 0;  // in one run of the step
  Bytes our_bytes, their_bytes;       // whole values, summed
  bool operator==(const CollectivesBeside&) const = default;
};

struct CompilerComparison {
  CompiledMemory ours;  // as the Program plans it: arguments, results, and the step's scratch memory
  Bytes arena;          // of the whole Program, with its other schedules
  std::vector<CollectivesBeside> collectives;  // all kinds of either side, by name
  // Where the bytes of a kind differ from the plan: the compiler's collectives of a size that was not planned. A
  // compiler may combine several planned ones.
  std::vector<CompiledCollective> unplanned;
};

// `step`: the function of `program` that `module` was lowered from.
CompilerComparison beside(const Program& program, const Function& step, const stablehlo::Module& module,
                          const Proof& proof);

}  // namespace systole::prove
