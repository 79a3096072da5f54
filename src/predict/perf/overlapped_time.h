#pragma once
// The time of a graph in which some collectives overlap other work (describe/program/overlap.h), by two clocks: compute
// and links. A collective begins when both are free, and its reader waits for it; where they overlap, the longer
// counts. If the ranks' own threads move the bytes, only the waiting overlaps.

#include <optional>

#include "predict/perf/op_time.h"

namespace systole {

// From the graph's start until all has ended. Empty if no collective overlaps anything: the time is then the sum of the
// kernels. `ago` as in graph_time. Errors: as op_time.
std::optional<Seconds> overlapped_time(const Graph& graph, const MachineSpeed& speed, Bytes ago);

}  // namespace systole
