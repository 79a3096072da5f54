#pragma once
// What an optimised module executes: its collectives, and its compiler's own count of cycles.
//
// Counts follow the entry's schedule and what it calls: a loop's body times its trip count, the costliest branch of a
// conditional. A fusion is one instruction, but a collective inside it is found. The TPU compiler writes
// `estimated_cycles` for what its cores compute, and none for copies between memories, collectives and custom calls
// (kernels): these are listed with how often they run, without an invented time.

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/pjrt/hlo_module.h"

namespace systole::prove {

// Collectives of one kind, size and origin.
struct CompiledCollective {
  std::string kind;          // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", …
  std::string source;        // the op that it came from, as the program named it; "": unnamed
  Bytes bytes;               // of one: the whole value, across its group
  std::int64_t group = 0;    // devices that take part; 0: all of the program
  std::int64_t written = 0;  // instructions in the module
  std::int64_t executed = 0;
  Bytes all() const;  // executed × bytes
  bool operator==(const CompiledCollective&) const = default;
};

struct UntimedKind {
  std::string name;  // "all-reduce", "custom-call tpu_custom_call", "copy-start"
  std::int64_t written = 0, executed = 0;
  Bytes bytes;  // of the results of all executions
  bool operator==(const UntimedKind&) const = default;
};

// Cycles of everything that came from one kind of op of the program, wherever it stands. A fusion with a matrix product
// counts as the product.
struct OpCycles {
  std::string op;  // "contract"; "": not from an op of Systole, such as the compiler's own copies
  double cycles = 0;
  bool operator==(const OpCycles&) const = default;
};

struct ExecutedModule {
  std::vector<CompiledCollective> collectives;  // the largest total first
  double product_flops = 0;                     // of dots and convolutions, in one run of the program
  double cycles = 0;                            // in one run of the program
  std::int64_t timed = 0;                       // executed instructions that have cycles
  std::vector<OpCycles> by_op;                  // of `cycles`, by name; for StableHLO that Systole wrote
  std::vector<UntimedKind> untimed;             // instructions that take time and have no cycles
  std::vector<std::string> endless;             // loops of unknown trip count; counted once
  bool operator==(const ExecutedModule&) const = default;
};

ExecutedModule executed_of(const pjrt::HloModule& module);

}  // namespace systole::prove
