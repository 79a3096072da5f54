#pragma once
// How long a graph takes when some of its collectives run beside other work (describe/graph/overlap.h): two clocks, of
// the compute and of the links. A collective begins when both are free and its reader waits for it, so that where they
// overlap the longer of the two counts. Where the ranks' own threads move the bytes only the waiting overlaps.

#include <optional>

#include "predict/perf/op_time.h"

namespace systole {

// From the graph's begin until all has ended; nothing when no collective of it overlaps anything, so that its time is
// the sum of its kernels'. `ago` as in graph_time. Errors: as op_time.
std::optional<Seconds> overlapped_time(const Graph& graph, const MachineSpeed& speed, Bytes ago);

}  // namespace systole
