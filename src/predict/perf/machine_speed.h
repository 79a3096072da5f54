#pragma once
// How fast a machine is, as perf reads it: the rates that calibration measures or the catalog states, of the whole
// machine with all the threads that a run uses. Plain data; no number lives in code.

#include <map>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/tensor/dtype.h"

namespace systole {

// A cache that a kernel call's operands and results may fit into.
struct CacheLevel {
  Bytes size;
  BytesPerSecond bandwidth;
};

struct MachineSpeed {
  std::string name;                     // "this-machine"
  std::string source;                   // where the rates come from, with date; for people
  bool calibrated = false;              // measured on this machine
  std::map<DType, FlopRate> matmul;     // of large contractions, by the operands' type
  std::map<DType, FlopRate> attention;  // of attention; a type that is absent: matmul's rate
  FlopRate vector;                      // adds, multiplies and divides outside contractions
  FlopRate elementary;                  // exp, log, tanh, sqrt, … per second
  BytesPerSecond memory;                // reads and writes together
  std::vector<CacheLevel> caches;       // smallest first; may be empty
  Seconds call;                         // of starting one kernel
};

// Errors: Failure(not_found) naming the machine, the type and the types that it has: an unknown rate is an error, never
// a guess.
FlopRate matmul_rate(const MachineSpeed& speed, DType dtype);
FlopRate attention_rate(const MachineSpeed& speed, DType dtype);
// Of the smallest level that holds `bytes`.
BytesPerSecond bandwidth_for(const MachineSpeed& speed, Bytes bytes);

// Errors: invalid, naming the rate that is not positive or the caches that are out of order.
Status check(const MachineSpeed& speed);

}  // namespace systole
