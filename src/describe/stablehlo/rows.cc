#include "describe/stablehlo/rows.h"

#include <numeric>

namespace systole::stablehlo {
namespace {

std::vector<int> first_dims(int count) {
  std::vector<int> dims(static_cast<std::size_t>(count));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

}  // namespace

Ssa along_rows(Builder& b, const Ssa& row, const Type& like) {
  return b.broadcast(row, Type(row.type.dtype, like.shape), first_dims(like.ndim() - 1));
}

Ssa along_last(Builder& b, const Ssa& vector, const Type& like) {
  const int last[] = {like.ndim() - 1};
  return b.broadcast(vector, Type(vector.type.dtype, like.shape), last);
}

Ssa reduce_last(Builder& b, std::string_view op, const Ssa& x) {
  const int last[] = {x.type.ndim() - 1};
  return b.reduce(op, x, last);
}

Ssa sum_rows(Builder& b, const Ssa& x) {
  if (x.type.ndim() == 1) return x;
  return b.reduce("add", x, first_dims(x.type.ndim() - 1));
}

Ssa mean_last(Builder& b, const Ssa& x) {
  const Ssa sum = reduce_last(b, "add", x);
  return b.binary("divide", sum, fill_like(b, sum, static_cast<double>(ops::last_size(x.type))));
}

Ssa fill_like(Builder& b, const Ssa& like, double value) { return b.constant(like.type, value); }

Ssa scaled(Builder& b, const Ssa& x, double factor) { return b.binary("multiply", x, fill_like(b, x, factor)); }

QuantizedRows quantized_rows(Builder& b, const Ssa& x) {
  const Ssa top = reduce_last(b, "maximum", b.unary("abs", x));
  const Ssa finite = b.is_finite(top), smallest = fill_like(b, top, 0x1p-100), limit = fill_like(b, top, 127);
  const Ssa counts = b.binary("and", finite, b.compare("GE", top, smallest));
  const Ssa largest = b.select(counts, top, smallest);
  const Ssa steps = b.binary("multiply", x, along_rows(b, b.binary("divide", limit, largest), x.type));
  const Ssa nearest = b.unary("round_nearest_even", steps);
  const Ssa kept = b.select(along_rows(b, counts, x.type), nearest, fill_like(b, x, 0));
  const Ssa scale =
      b.select(finite, b.binary("divide", largest, limit), fill_like(b, top, std::numeric_limits<double>::quiet_NaN()));
  return {kept, scale};
}

Ssa instead_of(Builder& b, const Ssa& x, double special, double value) {
  return b.select(b.compare("EQ", x, fill_like(b, x, special)), fill_like(b, x, value), x);
}

}  // namespace systole::stablehlo
