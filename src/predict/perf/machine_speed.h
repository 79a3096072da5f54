#pragma once
// How fast a machine is, as perf reads it: the rates that calibration measures or the catalog states, of the whole
// machine with all the threads that a run uses. Plain data; no number lives in code.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/mesh/collective_cost.h"
#include "ground/tensor/dtype.h"

namespace systole {

// A cache that a kernel call's operands and results may fit into.
struct CacheLevel {
  Bytes size;
  BytesPerSecond bandwidth;
};

// Attention: the rate of its products, and of its exponentials with all that goes with one (mask, maximum, sums).
struct AttentionSpeed {
  FlopRate products;
  FlopRate elementary;
};

struct MachineSpeed {
  std::string name;                       // "this-machine"
  std::string source;                     // where the rates come from, with date; for people
  bool calibrated = false;                // measured on this machine
  std::map<DType, FlopRate> matmul;       // of large square products, by the operands' type: what ratios are told of
  std::map<DType, FlopRate> contraction;  // of a product and its two gradients; a type that is absent: matmul's rate
  std::map<DType, AttentionSpeed> attention, attention_grad;  // a type that is absent: matmul's rate, and `elementary`
  FlopRate chain;                                             // ops on one element each, in chains of elementwise ops
  FlopRate kernel;                 // flops of the other kernels: norms, losses, sums, optimizers
  FlopRate elementary;             // exp, log, tanh, sqrt, … per second
  BytesPerSecond memory;           // reads and writes together
  BytesPerSecond update;           // the same of optimizers, which write where they have read; zero: memory's
  std::vector<CacheLevel> caches;  // smallest first; may be empty
  Seconds call;                    // of starting one kernel
  std::optional<LinkCost> link;    // between ranks; nothing: collectives cannot be priced
  // The ranks' own threads move the bytes (shared memory, sockets): beside other work only waiting is for nothing.
  bool cores_move_bytes = false;
};

// Errors: Failure(not_found) naming the machine, the type and the types that it has: an unknown rate is an error, never
// a guess.
FlopRate matmul_rate(const MachineSpeed& speed, DType dtype);
// Of a product as training has it; where it was not measured, the matmul rate.
FlopRate contraction_rate(const MachineSpeed& speed, DType dtype);
AttentionSpeed attention_speed(const MachineSpeed& speed, DType dtype, bool gradient);
// Of the smallest level that holds `bytes`; `update`: of an optimizer.
BytesPerSecond bandwidth_for(const MachineSpeed& speed, Bytes bytes, bool update = false);

// Errors: invalid, naming the rate that is not positive or the caches that are out of order.
Status check(const MachineSpeed& speed);

}  // namespace systole
