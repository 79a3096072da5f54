// Ops that move tokens to experts and back: gather_rows, scatter_rows, top_k, route (describe/ops/rows.cc, top_k.cc,
// route.cc).
//
// Batches of rows are one table with consecutive row numbers. top_k selects the maximum k times. route sorts the
// choices by (expert, order), so those of an expert are adjacent and in order.

#include <array>
#include <limits>

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

struct Rows {
  Ssa ids, inside;  // index in the table of all batches; whether it is valid
};

// rows[B…, M…] of batches with n rows each.
Rows rows_of_all(Builder& b, const Ssa& rows, int batch_dims, std::int64_t n) {
  const Ssa zero = fill_like(b, rows, 0), last = fill_like(b, rows, static_cast<double>(n - 1));
  const Ssa inside = b.binary("and", b.compare("GE", rows, zero), b.compare("LE", rows, last));
  Ssa ids = b.binary("maximum", b.binary("minimum", rows, last), zero);
  std::int64_t step = n;
  for (int dim = batch_dims - 1; dim >= 0; --dim) {
    const Ssa first = b.binary("multiply", b.iota(rows.type, dim), fill_like(b, rows, static_cast<double>(step)));
    ids = b.binary("add", ids, first);
    step *= rows.type.size(dim);
  }
  CHECK(step <= std::numeric_limits<std::int32_t>::max(), "{} rows", step);
  return {ids, inside};
}

Ssa zeros_outside(Builder& b, const Ssa& inside, const Ssa& x) {
  return b.select(along_rows(b, inside, x.type), x, fill_like(b, x, 0));
}

Shape as_table(const Type& type) {
  const std::int64_t e = type.size(type.ndim() - 1);
  return {ops::rows_of(type), e};
}

std::vector<Ssa> gather_rows(Builder& b, const NodeCall& call) {
  const Ssa& x = call.operands[0];
  if (x.type.num_elements() == 0 || call.results[0].num_elements() == 0) return {b.constant(call.results[0], 0)};
  const Rows rows = rows_of_all(b, call.operands[1], x.type.ndim() - 2, x.type.size(x.type.ndim() - 2));
  return {zeros_outside(b, rows.inside, b.gather_rows(b.reshape(x, as_table(x.type)), rows.ids))};
}

std::vector<Ssa> scatter_rows(Builder& b, const NodeCall& call) {
  const Type& result = call.results[0];
  if (result.num_elements() == 0 || call.operands[0].type.num_elements() == 0) return {b.constant(result, 0)};
  const auto batch = static_cast<int>(call.node.attrs.get_int("batch"));
  const bool f64 = result.dtype == DType::f64 || call.operands[0].type.dtype == DType::f64;
  const Rows rows = rows_of_all(b, call.operands[1], batch, result.size(batch));
  const Ssa y = zeros_outside(b, rows.inside, b.convert(call.operands[0], f64 ? DType::f64 : DType::f32));
  const Ssa sums = b.constant(Type(y.type.dtype, as_table(result)), 0);
  return {b.convert(b.reshape(b.scatter_add_rows(sums, rows.ids, y), result.shape), result.dtype)};
}

std::vector<Ssa> top_k(Builder& b, const NodeCall& call) {
  const Ssa& x = call.operands[0];
  const int last = x.type.ndim() - 1;
  const Ssa places = b.iota(x.type.with(DType::i32), last);
  const Ssa none = fill_like(b, x, -kInfinity), beyond = fill_like(b, places, static_cast<double>(x.type.size(last)));
  const auto column = [&](const Ssa& row) {
    Shape shape = row.type.shape;
    shape.push_back(1);
    return b.reshape(row, shape);
  };
  // NaN is selected only after all numbers, but never an element that was already selected.
  const Ssa numbers = b.compare("EQ", x, x);
  Ssa left = b.compare("EQ", places, places);
  std::vector<Ssa> values, indices;
  for (std::int64_t j = 0; j < call.node.attrs.get_int("k"); ++j) {
    const Ssa open = b.binary("and", left, numbers);
    const Ssa top = along_rows(b, reduce_last(b, "maximum", b.select(open, x, none)), x.type);
    const Ssa best =
        reduce_last(b, "minimum", b.select(b.binary("and", open, b.compare("EQ", x, top)), places, beyond));
    const Ssa rest = reduce_last(b, "minimum", b.select(left, places, beyond));
    const Ssa some = b.compare("LT", best, fill_like(b, best, static_cast<double>(x.type.size(last))));
    const Ssa index = b.select(some, best, rest);
    const Ssa here = b.compare("EQ", places, along_rows(b, index, places.type));
    values.push_back(column(reduce_last(b, "add", b.select(here, x, fill_like(b, x, 0)))));
    indices.push_back(column(index));
    left = b.binary("and", left, b.compare("NE", places, along_rows(b, index, places.type)));
  }
  return {b.concatenate(values, last), b.concatenate(indices, last)};
}

// The sum of wanted[g, e'] over e' before e.
Ssa wanted_before(Builder& b, const Ssa& wanted) {
  const std::int64_t experts = wanted.type.size(1);
  const Type pairs(DType::i32, {wanted.type.size(0), experts, experts});
  const int dims[] = {0, 2}, sum[] = {2};
  const Ssa before = b.compare("LT", b.iota(pairs, 2), b.iota(pairs, 1));
  return b.reduce("add", b.select(before, b.broadcast(wanted, pairs, dims), b.constant(pairs, 0)), sum);
}

// How many of ids[g, n] equal each expert.
Ssa counted(Builder& b, const Ssa& ids, std::int64_t experts) {
  const Type pairs(DType::i32, {ids.type.size(0), ids.type.size(1), experts});
  const int dims[] = {0, 1}, sum[] = {1};
  return b.reduce("add", b.convert(b.compare("EQ", b.broadcast(ids, pairs, dims), b.iota(pairs, 2)), DType::i32), sum);
}

std::vector<Ssa> route(Builder& b, const NodeCall& call) {
  const Type &chosen = call.operands[0].type, &places = call.results[0];
  const std::int64_t groups = chosen.size(0), k = chosen.size(2), n = chosen.size(1) * k, experts = places.size(1);
  if (n == 0 || groups == 0) return {b.constant(places, -1), b.constant(places, -1), b.constant(call.results[2], 0)};
  const Ssa ids = b.reshape(call.operands[0], {groups, n});
  const auto number = [&](const Ssa& like, std::int64_t value) {
    return fill_like(b, like, static_cast<double>(value));
  };
  const Ssa nobody = number(ids, experts);
  const Ssa known = b.binary("and", b.compare("GE", ids, number(ids, 0)), b.compare("LT", ids, nobody));
  const Ssa key =
      b.binary("add", b.binary("multiply", b.select(known, ids, nobody), number(ids, n)), b.iota(ids.type, 1));
  const Ssa order = b.binary("remainder", b.sort(key, 1), number(ids, n));
  const Ssa wanted = counted(b, ids, experts);
  const Ssa turn = b.iota(places, 2);
  const Ssa filled = b.compare("LT", turn, along_rows(b, wanted, places));
  const Ssa rank = b.binary("add", turn, along_rows(b, wanted_before(b, wanted), places));
  const Rows rows = rows_of_all(b, rank, 1, n);
  const Ssa choice = b.reshape(b.gather_rows(b.reshape(order, {groups * n, 1}), rows.ids), places.shape);
  const Ssa empty = number(choice, -1);
  return {b.select(filled, choice, empty), b.select(filled, b.binary("divide", choice, number(choice, k)), empty),
          wanted};
}

}  // namespace

std::vector<OpLowering> routing_lowerings() {
  return {{"gather_rows", gather_rows}, {"scatter_rows", scatter_rows}, {"top_k", top_k}, {"route", route}};
}

}  // namespace systole::stablehlo
