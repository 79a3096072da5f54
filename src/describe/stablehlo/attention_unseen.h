#pragma once
// Numbers that are not finite where a mask hides them. A product of matrices sums 0 · v of the keys that a query does
// not see, and 0 · NaN is NaN; attention's definition skips those keys. So the operands of such products are made
// finite, and what was not is told by another operand, which the mask covers: a key whose scores are NaN, a query whose
// lse is. Then a NaN or an infinity reaches the queries that see its key, and the keys that its query sees, whole:
// where the definition has it in one of d numbers, NaN may stand in all, and in lse. Everything else is as if it were
// not there.
//
// All of it is elementwise on operands, before the loop over blocks.

#include "describe/stablehlo/builder.h"

namespace systole::stablehlo {

Ssa finite_or_zero(Builder& b, const Ssa& x);
// x[..., d] to [...]: whether a number of the row is not finite.
Ssa not_finite_rows(Builder& b, const Ssa& x);
// x with NaN where bad[...] holds; bad has x's first dims.
Ssa nan_where(Builder& b, const Ssa& bad, const Ssa& x);

}  // namespace systole::stablehlo
