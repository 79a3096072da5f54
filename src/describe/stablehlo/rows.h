#pragma once
// What the lowerings along the last dim share: statistics are f32 (f64 of f64), and rows and vectors are brought to the
// shape of the tensor they belong to.

#include <limits>

#include "describe/graph/ops/last_dim.h"
#include "describe/stablehlo/builder.h"

namespace systole::stablehlo {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Ssa wide(Builder& b, const Ssa& x) { return b.convert(x, ops::statistic_dtype(x.type.dtype)); }

// row[...] and vector[e] to the shape of like[..., e].
Ssa along_rows(Builder& b, const Ssa& row, const Type& like);
Ssa along_last(Builder& b, const Ssa& vector, const Type& like);

Ssa reduce_last(Builder& b, std::string_view op, const Ssa& x);  // x[..., e] to [...]
Ssa sum_rows(Builder& b, const Ssa& x);                          // x[..., e] to [e]
Ssa mean_last(Builder& b, const Ssa& x);

Ssa fill_like(Builder& b, const Ssa& like, double value);
Ssa scaled(Builder& b, const Ssa& x, double factor);
// `value` where x equals `special`, else x.
Ssa instead_of(Builder& b, const Ssa& x, double special, double value);
// The greatest of a row as what may be subtracted from it: 0 of a row of nothing but -inf.
inline Ssa shift_of(Builder& b, const Ssa& top) { return instead_of(b, top, -kInfinity, 0); }

}  // namespace systole::stablehlo
