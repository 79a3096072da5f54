#pragma once
// Overlap of communication and computation: the one definition of a node's attr `overlap`, for planner, verifier,
// runtime, perf and printer. The attr changes when a node runs, never its bits. Without it a collective is synchronous.
//
//   overlap "reader"  the collective begins where it stands and ends before its first reader. If its graph has no
//                     reader, it ends before the next iteration needs its operand's place (in a body), or at the end of
//                     the function
//   overlap "ahead"   prefetch in the body of a repeat: a gather of a parameter's slice, or a conversion on the way to
//                     it, runs for the next iteration while this one computes; the first one runs before the loop. The
//                     result is double-buffered (its twin lies twin_stride() bytes behind it), so the loop stays rolled
//
// Collectives in flight end in the order in which they began, the same on every rank.
//
//   FSDP over 2 devices; body of a forward repeat of 2 layers; w is a layer's slice of a sharded parameter:
//     without        cast w0, gather w0, y = x·w0         cast w1, gather w1, z = y·w1
//     with           cast w0, begin w0   cast w1, begin w1, end w0, y = x·w0   end w1, z = y·w1

#include <vector>

#include "describe/ir/ir.h"

namespace systole {

enum class Overlap { none, reader, ahead };
constexpr const char* kOverlapAttr = "overlap";

// Errors: Failure(invalid) for an unknown attr `overlap`.
Overlap overlap_of(const GraphNode& node);

// True if the value is double-buffered: it is prefetched ("ahead") and not an output of its graph.
bool has_twin(const Graph& graph, ValueId id);
// Twins are aligned to this. REQUIRES: a Target's alignment is a power of two, at most this.
constexpr std::int64_t kTwinAlignment = 512;
// The distance in bytes from a place to its twin.
std::int64_t twin_stride(Bytes bytes);

// The first node that reads a result of node `n`, directly or through views; the number of nodes if there is none.
int first_reader(const Graph& graph, int n);

// Per value, the last node that uses its storage: as a reader, or as the node before which a collective in flight may
// still send from it. The number of nodes: until the end of the graph. -1: never used, or a view (see its storage).
std::vector<int> last_uses(const Graph& graph);

}  // namespace systole
