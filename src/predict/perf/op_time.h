#pragma once
// The time of a node and of a graph. A kernel call takes its start, and
//
//   contraction   flops and elements / the rates of the operand type and layout + what bytes take from behind the last
//                 cache; what was not measured so: flops / rate of the operand type + bytes / bandwidth
//   attention     flops / rate of the pass and operand type + exponentials / their rate
//   elementwise   elements / the rates of a chain's steps, or elements and rows of the kernel (norms, losses, sums);
//   what
//                 was not measured so: ops / their rate in chains, or flops / the rate of kernels, + elementary
//                 functions / their rate. Beside it bytes / bandwidth, a share of which is hidden
//   embedding     the same where the kernel was measured
//   the others    the roofline: arithmetic or bytes / bandwidth, whichever is longer (Williams, Waterman and Patterson,
//                 "Roofline", CACM 2009)
//
// Where both are added, the kernels go through blocks that are first moved and then worked on. Bytes move with the
// bandwidth of the cache that still holds them (reuse.h). Rates are what is left when the other terms are taken off a
// measurement. Ops know work; only this file divides it by a speed.

#include <array>
#include <functional>

#include "describe/graph/op.h"
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

// Errors: Failure(internal) for an op that no table row covers. REQUIRES: not a repeat, which is what its body is.
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

// Of a collective: all of it, and of which it waits for others and moves no bytes. Errors: as op_time.
struct CollectiveTime {
  Seconds total, latency;
};
CollectiveTime collective_time(const Graph& graph, const GraphNode& node, const MachineSpeed& speed);

// One kernel call, over and over: its bytes come from the smallest cache that holds all of them. Nothing for a view;
// nothing for a collective of one device.
// Errors: Failure(not_found) for a type that the machine has no rate for; for a collective of more devices where no
// link is known.
Seconds op_time(const Graph& graph, const GraphNode& node, const MachineSpeed& speed);
// All of a graph's, one after the other, bodies of repeats as often as they run. `ago`: bytes that are touched from one
// run of the graph to the next, its own included; at least touched_by(graph).
TimeByClass graph_time(const Graph& graph, const MachineSpeed& speed, Bytes ago);
// The same by kernel: the time of one call, and how often it runs.
using KernelTime = std::function<void(const GraphNode& node, Seconds time, double runs)>;
void each_kernel(const Graph& graph, const MachineSpeed& speed, Bytes ago, const KernelTime& told);

}  // namespace systole
