// Ops that create, move or select elements without changing them.

#include <array>

#include "describe/ir/op.h"
#include "describe/ops/ops.h"
#include "describe/stablehlo/arithmetic.h"
#include "describe/stablehlo/indices.h"
#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {
namespace {

using Results = std::vector<Ssa>;

std::vector<int> dims_of(const NodeCall& call, const char* attr) {
  const Ints& dims = call.node.attrs.get_ints(attr);
  return {dims.begin(), dims.end()};
}

Results lower_constant(Builder& b, const NodeCall& call) {
  return {b.constant(call.results[0], rounded(call.results[0].dtype, call.node.attrs.get_double("value")))};
}

// Counted in i32 and converted, because bf16 cannot count past 256.
Results lower_iota(Builder& b, const NodeCall& call) {
  const Type& type = call.results[0];
  const int dim = static_cast<int>(call.node.attrs.get_int("dim"));
  const bool count_so = type.dtype == DType::i64 || type.dtype == DType::u64 || type.dtype == DType::u32;
  return {cast_to(b, b.iota(count_so ? type : type.with(DType::i32), dim), type.dtype)};
}

Results lower_broadcast(Builder& b, const NodeCall& call) {
  return {b.broadcast(call.operands[0], call.results[0], dims_of(call, "dims"))};
}

Results lower_reshape(Builder& b, const NodeCall& call) { return {b.reshape(call.operands[0], call.results[0].shape)}; }

Results lower_transpose(Builder& b, const NodeCall& call) {
  return {b.transpose(call.operands[0], dims_of(call, "perm"))};
}

Results lower_slice(Builder& b, const NodeCall& call) {
  return {b.slice(call.operands[0], call.node.attrs.get_ints("start"), call.node.attrs.get_ints("limit"))};
}

Results lower_concatenate(Builder& b, const NodeCall& call) {
  return {b.concatenate(call.operands, static_cast<int>(call.node.attrs.get_int("dim")))};
}

Results lower_pad(Builder& b, const NodeCall& call) {
  const Ssa& x = call.operands[0];
  const Ssa value = b.constant(Type(x.type.dtype, {}), rounded(x.type.dtype, call.node.attrs.get_double("value")));
  return {b.pad(x, value, call.node.attrs.get_ints("low"), call.node.attrs.get_ints("high"))};
}

Results lower_copy(Builder&, const NodeCall& call) { return {call.operands[0]}; }

// --- by dynamic indices

Ssa zeros(Builder& b, const Type& type) { return b.constant(type, 0); }

// x[b, t, …] as a table of b · t rows; the table row where each entry begins, in an integer type large enough.
struct Rows {
  std::int64_t batch, length, width;
  Type index;
  explicit Rows(const Type& x)
      : batch(x.size(0)),
        length(x.size(1)),
        width(num_elements(Shape(x.shape.begin() + 2, x.shape.end()))),
        index(batch * length >= (std::int64_t{1} << 31) - 1 ? DType::i64 : DType::i32, {batch}) {}
  Ssa table(Builder& b, const Ssa& x) const { return b.reshape(x, {batch * length, width}); }
  Ssa firsts(Builder& b) const {
    return b.binary("multiply", b.iota(index, 0), b.integer(index, static_cast<std::uint64_t>(length)));
  }
};

// y[b, …] = x[b, index[b], …], zeros when index[b] is out of range.
Results lower_take_row(Builder& b, const NodeCall& call) {
  const Ssa &x = call.operands[0], &index = call.operands[1];
  const Type& y = call.results[0];
  const Rows rows(x.type);
  if (rows.length == 0) return {zeros(b, y)};
  const Ssa ids = b.binary("add", rows.firsts(b), b.convert(clamped(b, index, rows.length), rows.index.dtype));
  const Ssa taken = b.reshape(b.gather_rows(rows.table(b, x), ids), y.shape);
  const Ssa there = b.broadcast(within(b, index, rows.length), y.with(DType::boolean), std::array{0});
  return {b.select(there, taken, zeros(b, y))};
}

// Rows outside their entry get an index beyond the table and are dropped.
Results lower_cache_write(Builder& b, const NodeCall& call) {
  const Ssa &cache = call.operands[0], &rows = call.operands[1], &position = call.operands[2];
  const Rows all(cache.type);
  const std::int64_t count = rows.type.size(1);
  if (count == 0 || cache.type.num_elements() == 0) return {cache};
  const Type per_row(DType::i32, {all.batch, count});
  const Ssa at = b.binary("add", b.broadcast(position, per_row, std::array{0}), b.iota(per_row, 1));
  const Type id_type = per_row.with(all.index.dtype);
  const Ssa id = b.binary("add", b.broadcast(all.firsts(b), id_type, std::array{0}), b.convert(at, id_type.dtype));
  const Ssa none = b.integer(id_type, static_cast<std::uint64_t>(all.batch * all.length));
  const Ssa ids = b.select(within(b, at, all.length), id, none);
  const Ssa written = b.scatter_rows(all.table(b, cache), ids, b.reshape(rows, {all.batch, count, all.width}));
  return {b.reshape(written, cache.type.shape)};
}

// Part `index` of `parts` along dim, zeros when index is out of range.
Results lower_take_part(Builder& b, const NodeCall& call) {
  const Ssa &x = call.operands[0], &index = call.operands[1];
  const Type& y = call.results[0];
  const auto dim = static_cast<int>(call.node.attrs.get_int("dim"));
  const std::int64_t parts = call.node.attrs.get_int("parts");
  if (y.num_elements() == 0) return {zeros(b, y)};
  const Type place(DType::i32, {});
  const Ssa part = b.convert(clamped(b, index, parts), DType::i32);
  std::vector<Ssa> start(y.shape.size(), b.integer(place, 0));
  start[static_cast<std::size_t>(dim)] =
      b.binary("multiply", part, b.integer(place, static_cast<std::uint64_t>(y.size(dim))));
  const Ssa taken = b.dynamic_slice(x, start, y.shape);
  return {b.select(b.splat(within(b, index, parts), y), taken, zeros(b, y))};
}

}  // namespace

std::vector<OpLowering> movement_lowerings() {
  return {{"constant", lower_constant},
          {"iota", lower_iota},
          {"broadcast", lower_broadcast},
          {"reshape", lower_reshape},
          {"transpose", lower_transpose},
          {"slice", lower_slice},
          {"concatenate", lower_concatenate},
          {"pad", lower_pad},
          {"copy", lower_copy},
          {"take_row", lower_take_row},
          {"take_part", lower_take_part},
          {"cache_write", lower_cache_write}};
}

}  // namespace systole::stablehlo
