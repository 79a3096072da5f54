#pragma once
// The collectives of a function: how often each runs, and how many bytes a device sends. Summary, cost model, player
// and counters use the same figures.

#include <vector>

#include "describe/program/collective_call.h"
#include "describe/program/overlap.h"
#include "describe/program/program.h"

namespace systole {

struct CollectiveUse {
  CollectiveCall call;
  std::int64_t times = 1;  // in one call of the function, iterations of repeats included
  int depth = 0;           // number of enclosing repeats
  Overlap overlap = Overlap::none;
};

// In execution order.
std::vector<CollectiveUse> collectives_of(const Graph& graph);

// Bytes that the transport of a device writes in one run of the schedule, or in one call of the function.
Bytes bytes_sent(const Program& program, const Schedule& schedule, std::int64_t device);
Bytes bytes_sent(const Program& program, const Function& function, std::int64_t device);

// Lower bound on the bytes that a device sends for one collective, averaged over the devices: an all_gather over n
// devices sends n - 1 times the operand. Independent of the mesh.
double mean_bytes_sent(const CollectiveCall& call);

// Axes along which nothing is sharded and nothing is sent: the devices along them do the same work.
std::vector<Axis> unused_axes(const Program& program);

// Sets the attr `algorithm` of every collective to the cheapest one on the target's links. Without links: unchanged.
Graph with_algorithms(const Graph& graph, const Mesh& mesh, const Target& target);

}  // namespace systole
