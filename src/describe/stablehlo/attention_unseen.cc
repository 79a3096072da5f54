#include "describe/stablehlo/attention_unseen.h"

#include <limits>
#include <numeric>
#include <vector>

#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {

Ssa finite_or_zero(Builder& b, const Ssa& x) { return b.select(b.is_finite(x), x, fill_like(b, x, 0)); }

Ssa not_finite_rows(Builder& b, const Ssa& x) { return b.unary("not", reduce_last(b, "and", b.is_finite(x))); }

Ssa nan_where(Builder& b, const Ssa& bad, const Ssa& x) {
  std::vector<int> dims(bad.type.shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  const Ssa everywhere = b.broadcast(bad, x.type.with(DType::boolean), dims);
  return b.select(everywhere, fill_like(b, x, std::numeric_limits<double>::quiet_NaN()), x);
}

}  // namespace systole::stablehlo
