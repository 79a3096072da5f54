#pragma once
// Starts collectives early and ends them late: reorders the nodes of a function so that each collective begins as soon
// as its operand exists and nodes that only store its result come last, and sets the attr `overlap`
// (describe/program/overlap.h). The results are the same, to the bit.
//
// * Gathers of stored parameters in the body of a repeat run one iteration ahead (prefetch).
// * A collective, with conversions that only it reads, moves up to the producer of its operand, but not across a
//   repeat, during which its result would occupy memory.
// * A permute stays in place, between steps of its ring (ops/attention_zigzag.h), and overlaps with the next nodes.
// * In a body, a node that only passes a collective's result to an output moves to the end.
//
// REQUIRES: own_outputs has run; the algorithms are chosen.

#include "describe/ir/ir.h"

namespace systole {

Graph overlap_collectives(const Graph& function);

}  // namespace systole
