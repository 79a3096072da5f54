#pragma once
// How fast a machine is, as perf reads it: the rates that calibration measures or the catalog states, of the whole
// machine with all the threads that a run uses. Plain data; no number lives in code.

#include <map>
#include <optional>
#include <string>
#include <utility>
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
  BytesPerSecond write;  // of bytes that are written and were not read; zero: bandwidth
};

// What a kernel does with bytes. An optimizer writes where it has read: nothing is fetched to be overwritten.
enum class Touch { read, write, update };

// Which dims of the operands a product sums over: the left one's last and the right one's first (nn: mk,kn->mn), the
// last of both (nt: mk,nk->mn), or the left one's first (tn: mk,mn->kn, the gradient of a weight).
enum class ProductLayout { nn, nt, tn };
constexpr int kNumProductLayouts = 3;
const char* name_of(ProductLayout layout);  // "nn"

// Beside its flops a product moves, packs and converts elements, those of its operands and its result.
struct ProductSpeed {
  FlopRate flops;
  FlopRate elements;
};

// Of a kernel whose operands are at hand: the elements of its first operand, and what each row takes by itself.
struct KernelSpeed {
  FlopRate elements;
  Seconds row;
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
  std::map<std::pair<DType, ProductLayout>, ProductSpeed> products;  // what is absent: contraction's rate
  std::map<DType, AttentionSpeed> attention, attention_grad;  // a type that is absent: matmul's rate, and `elementary`
  FlopRate chain;                                             // ops on one element each, in chains of elementwise ops
  FlopRate kernel;      // flops of the other kernels: norms, losses, sums, optimizers
  FlopRate elementary;  // exp, log, tanh, sqrt, … per second
  // Elements per second of a step of a chain that makes a value of this type; a load and a store are steps of f32.
  // Without f32's all ops take `chain` and `elementary`, loads and stores nothing.
  std::map<DType, FlopRate> steps;
  std::map<std::string, FlopRate, std::less<>> functions;        // of a step in f32 by its op: "gelu_tanh"
  std::map<std::pair<std::string, DType>, KernelSpeed> kernels;  // by op and type of the first operand
  double serial = 1;      // of elementwise kernels: the share of the shorter of moving and working that is not hidden
  BytesPerSecond memory;  // reads and writes together, or reads where `write` is known
  BytesPerSecond write;   // of bytes that are written and were not read; zero: memory's
  BytesPerSecond update;  // the same of optimizers, which write where they have read; zero: memory's
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
// Of the smallest level that holds `bytes`.
BytesPerSecond bandwidth_for(const MachineSpeed& speed, Bytes bytes, Touch touch = Touch::read);

// Errors: invalid, naming the rate that is not positive or the caches that are out of order.
Status check(const MachineSpeed& speed);

}  // namespace systole
