#pragma once
// What an optimised module does when it runs: its collectives, and its compiler's own count of cycles.
//
// Executed is the entry's schedule, and what it calls: a loop's body as often as the loop runs, of a conditional's
// branches the costliest. A fusion is one instruction; a collective inside one is found all the same. TPUs' compiler
// writes `estimated_cycles` beside what its own cores compute. Without them are copies between memories, collectives,
// custom calls (kernels): they are named with how often they run, and no time is made up for them.

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/pjrt/hlo_module.h"

namespace systole::prove {

// Those of one kind, size and origin.
struct CompiledCollective {
  std::string kind;          // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", …
  std::string source;        // the op that it came from, as the program named it; "" where nobody did
  Bytes bytes;               // of one: the whole value, as all of its group together have it
  std::int64_t group = 0;    // devices that take part; 0: all of the program's
  std::int64_t written = 0;  // so many instructions
  std::int64_t executed = 0;
  Bytes all() const;  // executed times its bytes
  bool operator==(const CompiledCollective&) const = default;
};

struct UntimedKind {
  std::string name;  // "all-reduce", "custom-call tpu_custom_call", "copy-start"
  std::int64_t written = 0, executed = 0;
  Bytes bytes;  // of their results, all of them executed
  bool operator==(const UntimedKind&) const = default;
};

// Of all that was made of one of the program's ops, wherever it stands; of a fusion that holds a product, the
// product's.
struct OpCycles {
  std::string op;  // "contract"; "" of what no op of Systole's is the source of, such as the compiler's own copies
  double cycles = 0;
  bool operator==(const OpCycles&) const = default;
};

struct ExecutedModule {
  std::vector<CompiledCollective> collectives;  // the largest total first
  double product_flops = 0;                     // of dots and convolutions, in one run of the program
  double cycles = 0;                            // the same way
  std::int64_t timed = 0;                       // executed instructions that have cycles
  std::vector<OpCycles> by_op;                  // of the cycles, by name; of StableHLO that Systole wrote
  std::vector<UntimedKind> untimed;             // and those that have none and take time
  std::vector<std::string> endless;             // loops whose number of rounds is not known: counted once
  bool operator==(const ExecutedModule&) const = default;
};

ExecutedModule executed_of(const pjrt::HloModule& module);

}  // namespace systole::prove
