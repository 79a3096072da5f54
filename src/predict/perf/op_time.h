#pragma once
// The time of a node and of a graph. A kernel call takes its start, and
//
//   contraction   flops and elements / the rates of the operand type and layout + the extra time of bytes from behind
//                 the last cache; if not measured: flops / rate of the operand type + bytes / bandwidth
//   attention     flops / rate of the pass and operand type + exponentials / their rate; of one query over a cache its
//                 bytes / bandwidth, if that is longer
//   elementwise   elements / the rates of a chain's steps, or elements and rows / the kernel's (norms, losses, sums);
//                 if not measured: ops / their rate in chains, or flops / the rate of kernels, + elementary functions /
//                 their rate. In parallel: bytes / bandwidth; a fraction of the shorter of both is hidden
//   embedding     the same if the kernel was measured
//   all others    the roofline: arithmetic or bytes / bandwidth, whichever is longer (Williams, Waterman and Patterson,
//                 "Roofline", CACM 2009)
//
// Where both are added, the kernel works in blocks that are first moved and then computed. Bytes move at the bandwidth
// of the cache that still holds them (reuse.h). A rate is what remains of a measurement after the other terms are
// subtracted. Ops know work; only this file divides it by a speed.

#include <array>
#include <functional>

#include "describe/ir/op.h"
#include "predict/perf/machine_speed.h"

namespace systole {

enum class OpClass {
  contraction,
  attention,
  elementwise,  // and norms, softmax, losses, sums, dropout: passes over activations
  embedding,
  optimizer,
  movement,  // copies, transposes, slices, constants, caches
  collective,
};
constexpr int kNumOpClasses = 7;
const char* name_of(OpClass op_class);  // "contraction"

// Errors: Failure(internal) for an op that no table row covers. REQUIRES: not a repeat; classify its body instead.
OpClass class_of(const OpDef& op);

class TimeByClass {
 public:
  Seconds& operator[](OpClass c) { return seconds_[static_cast<std::size_t>(c)]; }
  Seconds operator[](OpClass c) const { return seconds_[static_cast<std::size_t>(c)]; }
  Seconds total() const;
  TimeByClass& operator+=(const TimeByClass& other);
  TimeByClass operator*(double times) const;

 private:
  std::array<Seconds, kNumOpClasses> seconds_{};
};

// A collective's time, and the part of it that waits and moves no bytes. Errors: as op_time.
struct CollectiveTime {
  Seconds total, latency;
};
CollectiveTime collective_time(const Graph& graph, const GraphNode& node, const MachineSpeed& speed);

// One kernel call, repeated: its bytes come from the smallest cache that holds all of them. Zero for a view and for a
// collective of one device. Errors: Failure(not_found) if the machine has no rate for a type, or no link for a
// collective of several devices.
Seconds op_time(const Graph& graph, const GraphNode& node, const MachineSpeed& speed);
// All kernels of a graph, one after the other; bodies of repeats count as often as they run. `ago`: bytes touched
// between two runs of the graph, its own included; at least touched_by(graph).
TimeByClass graph_time(const Graph& graph, const MachineSpeed& speed, Bytes ago);
// The same for each kernel: the time of one call, and how often it runs.
using KernelTime = std::function<void(const GraphNode& node, Seconds time, double runs)>;
void each_kernel(const Graph& graph, const MachineSpeed& speed, Bytes ago, const KernelTime& told);

}  // namespace systole
