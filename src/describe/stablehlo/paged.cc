// Ops of a paged cache (describe/ops/paged.cc). Attention gathers the pages of each entry into a row of keys and one of
// values, of the table's whole length: shapes are static. Products take the queries' type, to which keys and values
// in another are widened, and accumulate in f32 (f64 for f64), as in attention.cc.

#include <array>
#include <limits>

#include "describe/ir/op.h"
#include "describe/ops/ops.h"
#include "describe/stablehlo/indices.h"
#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

// The positions of t rows from first[b] on, i32[b, t].
Ssa positions(Builder& b, const Ssa& first, std::int64_t t) {
  const Type type(DType::i32, {first.type.size(0), t});
  return b.binary("add", b.broadcast(first, type, std::array{0}), b.iota(type, 1));
}

// Rows without a place get an index beyond the pool and are dropped.
std::vector<Ssa> lower_page_write(Builder& b, const NodeCall& call) {
  const Ssa &pages = call.operands[0], &rows = call.operands[1], &table = call.operands[2];
  const std::int64_t batch = rows.type.size(0), t = rows.type.size(1), m = table.type.size(1), p = pages.type.size(0),
                     z = pages.type.size(1);
  if (rows.type.num_elements() == 0 || pages.type.num_elements() == 0 || m == 0) return {pages};
  const std::int64_t width = pages.type.num_elements() / (p * z);
  const Ssa at = positions(b, call.operands[3], t);
  const Ssa inside = clamped(b, at, m * z), size = whole(b, at, z);
  const Ssa entry =
      b.binary("add", b.binary("multiply", b.iota(at.type, 0), whole(b, at, m)), b.binary("divide", inside, size));
  const Ssa page = b.reshape(b.gather_rows(b.reshape(table, {batch * m, 1}), entry), at.type.shape);
  const bool many = p * z >= (std::int64_t{1} << 31) - 1;
  const auto index = [&](const Ssa& x) { return b.convert(x, many ? DType::i64 : DType::i32); };
  const Ssa first = index(page);
  const Ssa id =
      b.binary("add", b.binary("multiply", first, whole(b, first, z)), index(b.binary("remainder", inside, size)));
  const Ssa there = b.binary("and", within(b, at, m * z), within(b, page, p));
  const Ssa ids = b.select(there, id, whole(b, id, p * z));
  const Ssa written = b.scatter_rows(b.reshape(pages, {p * z, width}), ids, b.reshape(rows, {batch, t, width}));
  return {b.reshape(written, pages.type.shape)};
}

std::vector<Ssa> lower_paged_attention(Builder& b, const NodeCall& call) {
  const Ssa &q = call.operands[0], &k = call.operands[1], &table = call.operands[3];
  const std::int64_t batch = q.type.size(0), t = q.type.size(1), h = q.type.size(2), d = q.type.size(3),
                     p = k.type.size(0), z = k.type.size(1), n = k.type.size(2), m = table.type.size(1), s = m * z;
  if (q.type.num_elements() == 0 || s == 0) return {b.constant(call.results[0], 0)};
  const DType sums = ops::statistic_dtype(q.type.dtype);
  const Ssa ids = clamped(b, table, p), there = within(b, table, p);
  const auto gathered = [&](const Ssa& pool) {
    const Ssa pages = b.gather_rows(b.reshape(pool, {p, z * n * d}), ids);
    const Ssa whole_table = b.select(along_rows(b, there, pages.type), pages, fill_like(b, pages, 0));
    return b.convert(b.reshape(whole_table, {batch, s, n, d}), q.type.dtype);
  };
  const Ssa keys = gathered(k), values = gathered(call.operands[2]);
  const Ssa grouped = b.reshape(q, {batch, t, n, h / n, d});
  Ssa scores = b.dot(grouped, keys, {{0, 2}, {0, 2}, {4}, {3}}, sums);  // [b, n, t, g, s]
  scores = scaled(b, scores, call.node.attrs.get_double("scale"));
  const Type pairs(DType::i32, scores.type.shape);
  const Ssa place = b.broadcast(positions(b, call.operands[4], t), pairs, std::array{0, 2}), key = b.iota(pairs, 4);
  Ssa seen = b.compare("LE", key, place);
  if (call.node.attrs.find("window") != nullptr) {
    const Ssa window = whole(
        b, place, std::min<std::int64_t>(call.node.attrs.get_int("window"), std::numeric_limits<std::int32_t>::max()));
    seen = b.binary("and", seen, b.compare("LT", b.binary("subtract", place, key), window));
  }
  scores = b.select(seen, scores, fill_like(b, scores, -kInfinity));
  const Ssa shift = shift_of(b, reduce_last(b, "maximum", scores));
  const Ssa weights = b.unary("exponential", b.binary("subtract", scores, along_rows(b, shift, scores.type)));
  const Ssa total = instead_of(b, reduce_last(b, "add", weights), 0, 1);
  const Ssa o = b.dot(b.convert(weights, values.type.dtype), values, {{0, 1}, {0, 2}, {4}, {1}}, sums);
  const Ssa done = b.convert(b.binary("divide", o, along_rows(b, total, o.type)), q.type.dtype);
  return {b.reshape(b.transpose(done, std::array{0, 2, 1, 3, 4}), q.type.shape)};
}

}  // namespace

std::vector<OpLowering> paged_lowerings() {
  return {{"page_write", lower_page_write}, {"paged_attention", lower_paged_attention}};
}

}  // namespace systole::stablehlo
