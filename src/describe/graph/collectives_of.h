#pragma once
// The collectives of a function, with how often each runs and what a device sends for it: the same figures for who
// prints, prices, plays and counts them.

#include <vector>

#include "describe/graph/collective_call.h"
#include "describe/graph/overlap.h"
#include "describe/graph/program.h"

namespace systole {

struct CollectiveUse {
  CollectiveCall call;
  std::int64_t times = 1;  // in one call of the function: repeats counted
  int depth = 0;           // repeats around it
  Overlap overlap = Overlap::none;
};

// In the order in which they run.
std::vector<CollectiveUse> collectives_of(const Graph& graph);

// Bytes that a device sends in one call of the function, or for one run of the schedule: what its transport writes.
Bytes bytes_sent(const Program& program, const Schedule& schedule, std::int64_t device);
Bytes bytes_sent(const Program& program, const Function& function, std::int64_t device);

// What every device sends for one run of it, at the least and in the mean: a gather over n devices sends n - 1 times
// the operand. In bytes, of any mesh at once.
double mean_bytes_sent(const CollectiveCall& call);

// Axes along which nothing is cut and nothing is sent: the devices along them do the same work.
std::vector<Axis> unused_axes(const Program& program);

// Gives every collective over links that the target knows the algorithm that is cheapest there.
Graph with_algorithms(const Graph& graph, const Mesh& mesh, const Target& target);

}  // namespace systole
