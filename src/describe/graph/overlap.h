#pragma once
// What runs beside other work: the one meaning that planner, verifier, runtime, perf and printer give to the attr
// `overlap` of a node. It says when, never what: without it every collective ends where it stands, with the same bits.
//
//   overlap "reader"  a collective begins where it stands and ends before its first reader; without one in its graph,
//   in
//                     a body not before the next iteration needs its operand's place, else at the end of the function
//   overlap "ahead"   in the body of a repeat: a gather of a stored parameter's slice, or a conversion on the way to
//   it,
//                     is done for the next iteration while this one computes, and for the first one before it. What it
//                     makes has two places, taken in turns (its twin lies twin_stride() behind it), so that the Program
//                     stays rolled
//
// Collectives that have begun end in the order in which they began, on every rank the same.
//
//   fully sharded over 2, the body of a forward repeat of 2 layers, w its slice of a parameter in parts:
//     without        cast w0, gather w0, y = x·w0         cast w1, gather w1, z = y·w1
//     with           cast w0, begin w0   cast w1, begin w1, end w0, y = x·w0   end w1, z = y·w1

#include <vector>

#include "describe/graph/ir.h"

namespace systole {

enum class Overlap { none, reader, ahead };
constexpr const char* kOverlapAttr = "overlap";

// Errors: Failure(invalid) for an attr that names none.
Overlap overlap_of(const GraphNode& node);

// The value lies in one of two places in turns: made ahead, and no output of its graph, which has places of its own.
bool has_twin(const Graph& graph, ValueId id);
// From a place to its twin; REQUIRES of alignments: powers of two up to this.
constexpr std::int64_t kTwinAlignment = 512;
std::int64_t twin_stride(Bytes bytes);

// The first node that reads the results of node `n`, itself or through views; the number of nodes: none.
int first_reader(const Graph& graph, int n);

// Per value the last node that reads the bytes that lie in it, or before which a collective that has begun may still
// send them; the number of nodes: the end of the graph; -1: nobody. Of a view: -1, its storage speaks for it.
std::vector<int> last_uses(const Graph& graph);

}  // namespace systole
