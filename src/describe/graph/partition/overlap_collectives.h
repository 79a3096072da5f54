#pragma once
// Collectives start early and finish late: puts the nodes of a function in an order in which each collective begins as
// soon as its operand is there and what only hands its result on comes last, and says of each whether others run beside
// it (describe/graph/overlap.h). What is computed stays the same, to the bit.
//
// * Stored parameters that a body gathers are gathered one iteration ahead.
// * A collective, with the conversions that lead to it alone, moves up to behind what makes its operand, but over no
//   repeat: its result would lie there all the while.
// * A permute stays where it stands, between steps of its ring (ops/attention_zigzag.h), and runs beside what follows.
// * In a body a node that takes a collective's result and gives it to an output moves to the end.
//
// REQUIRES: own_outputs has run; the algorithms are chosen.

#include "describe/graph/ir.h"

namespace systole {

Graph overlap_collectives(const Graph& function);

}  // namespace systole
