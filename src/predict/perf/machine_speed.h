#pragma once
// The speed of a machine: rates that calibration measured or the catalog states, for the whole machine with all threads
// of a run. Plain data; the code contains no rates.

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
  BytesPerSecond write;  // of bytes written but not read; zero: bandwidth
};

// How a kernel touches bytes. update: an optimizer writes where it has read, so nothing is fetched to be overwritten.
enum class Touch { read, write, update };

// The dims that a product sums over: the last of the left operand and the first of the right (nn: mk,kn->mn), the last
// of both (nt: mk,nk->mn), or the first of both (tn: mk,mn->kn, the gradient of a weight).
enum class ProductLayout { nn, nt, tn };
constexpr int kNumProductLayouts = 3;
const char* name_of(ProductLayout layout);  // "nn"

// Besides its flops, a product moves, packs and converts the elements of its operands and result.
struct ProductSpeed {
  FlopRate flops;
  FlopRate elements;
};

// A kernel with its operands in cache: elements of its first operand per second, and a fixed time per row.
struct KernelSpeed {
  FlopRate elements;
  Seconds row;
};

// Attention: the rate of its products, and of its exponentials, each with its mask, maximum and sums.
struct AttentionSpeed {
  FlopRate products;
  FlopRate elementary;
};

// Products of so many rows with square weights, each of which is read once: weights a second behind the last cache, and
// in it.
struct ServedProducts {
  std::int64_t rows = 1;
  FlopRate far, near;
};

struct MachineSpeed {
  std::string name;                       // "this-machine"
  std::string source;                     // where the rates come from, with date; for people
  bool calibrated = false;                // measured on this machine
  std::map<DType, FlopRate> matmul;       // large square products, by operand type; ratios are relative to it
  std::map<DType, FlopRate> contraction;  // a product and its two gradients; absent type: matmul's rate
  std::map<std::pair<DType, ProductLayout>, ProductSpeed> products;  // absent: contraction's rate
  std::map<DType, AttentionSpeed> attention, attention_grad;         // absent type: matmul's rate, and `elementary`
  FlopRate chain;       // ops per second, each on one element, in elementwise chains
  FlopRate kernel;      // flops of the other kernels: norms, losses, sums, optimizers
  FlopRate elementary;  // exp, log, tanh, sqrt, … per second
  // Elements per second of one step of an elementwise chain, by the type of its result; a load or store counts as a
  // step in f32. Without a rate for f32, ops use `chain` and `elementary`, and loads and stores are free.
  std::map<DType, FlopRate> steps;
  std::map<std::string, FlopRate, std::less<>> functions;        // of a step in f32, by op: "gelu_tanh"
  std::map<std::pair<std::string, DType>, KernelSpeed> kernels;  // by op and type of the first operand
  double serial = 1;      // elementwise kernels: fraction of the shorter of moving and computing that is not hidden
  BytesPerSecond memory;  // reads and writes together; reads only if `write` is known
  BytesPerSecond write;   // of bytes written but not read; zero: memory's
  BytesPerSecond update;  // of optimizers, which write where they have read; zero: memory's
  std::vector<CacheLevel> caches;  // smallest first; may be empty
  Seconds call;                    // to start one kernel
  // Of a device that serves, by the type and the side of the weights, each by rows, ascending; `serves`: products take
  // these where they are known.
  std::map<DType, std::map<std::int64_t, std::vector<ServedProducts>>> served;
  bool serves = false;
  FlopRate draw;                 // logits a second from which one thread draws a token; zero: unknown
  std::optional<LinkCost> link;  // between ranks; empty: collectives cannot be priced
  // The ranks' own threads move the bytes (shared memory, sockets): only waiting overlaps with other work.
  bool cores_move_bytes = false;
};

// Errors: Failure(not_found) naming the machine, the type and the types that it has: an unknown rate is an error, never
// a guess.
FlopRate matmul_rate(const MachineSpeed& speed, DType dtype);
// The rate of products in training; if not measured, the matmul rate.
FlopRate contraction_rate(const MachineSpeed& speed, DType dtype);
AttentionSpeed attention_speed(const MachineSpeed& speed, DType dtype, bool gradient);
// Bandwidth of the smallest level that holds `bytes`.
BytesPerSecond bandwidth_for(const MachineSpeed& speed, Bytes bytes, Touch touch = Touch::read);

// Errors: invalid, naming the rate that is not positive or the caches that are out of order.
Status check(const MachineSpeed& speed);

}  // namespace systole
