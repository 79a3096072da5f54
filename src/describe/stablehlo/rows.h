#pragma once
// Shared by lowerings along the last dim: statistics in f32 (f64 for f64), and broadcasts of rows and vectors to the
// shape of their tensor.

#include <limits>

#include "describe/ops/last_dim.h"
#include "describe/stablehlo/builder.h"

namespace systole::stablehlo {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Ssa wide(Builder& b, const Ssa& x) { return b.convert(x, ops::statistic_dtype(x.type.dtype)); }

// Broadcasts row[...] or vector[e] to the shape of like[..., e].
Ssa along_rows(Builder& b, const Ssa& row, const Type& like);
Ssa along_last(Builder& b, const Ssa& vector, const Type& like);

Ssa reduce_last(Builder& b, std::string_view op, const Ssa& x);  // x[..., e] to [...]
Ssa sum_rows(Builder& b, const Ssa& x);                          // x[..., e] to [e]
Ssa mean_last(Builder& b, const Ssa& x);

Ssa fill_like(Builder& b, const Ssa& like, double value);
Ssa scaled(Builder& b, const Ssa& x, double factor);

// x[..., e] of f32 in 127 steps of each row's largest value, as contract_int8 has it. `q`: integers, in f32; `scale`: f32
// per row, NaN where a value is not finite.
struct QuantizedRows {
  Ssa q, scale;
};
QuantizedRows quantized_rows(Builder& b, const Ssa& x);

// `value` where x equals `special`, else x.
Ssa instead_of(Builder& b, const Ssa& x, double special, double value);
// The maximum of a row, made safe to subtract: 0 for a row of only -inf.
inline Ssa shift_of(Builder& b, const Ssa& top) { return instead_of(b, top, -kInfinity, 0); }

}  // namespace systole::stablehlo
