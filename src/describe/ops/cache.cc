// The ops of a decoder's cache. Their indices are data.
//
//   take_row     y[b, …] = x[b, index[b], …], zeros when index[b] is outside
//   cache_write  the cache with rows[b, t, …] at [b, position[b] + t, …]; rows outside it are dropped
//
// Constraints: take_row C1 index is i32[b] for x[b, t, …]. cache_write C1 position is i32[b] for cache[b, s, …]. C2
// rows have the cache's type, except for their number.
// The gradient of take_row is the cotangent under a mask. cache_write has none: a cache is not trained.
// Sharding: t and s are replicated, all other dims pass.
// Work of cache_write: the rows, read and written, and the positions, as that of page_write (paged.cc).

#include <array>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

Work only_moves(const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); }

std::vector<Type> infer_take_row(const OpCall& call) {
  if (call.num_operands() != 2)
    constraint("take_row_c1", "take_row takes x and index, got {} operands", call.num_operands());
  const Type &x = call.operand(0), &index = call.operand(1);
  if (x.ndim() < 2 || !(index == Type(DType::i32, {x.shape[0]})))
    constraint("take_row_c1", "take_row of {} at {}", to_string(x), to_string(index));
  Type y = x;
  y.remove_dim(1);
  return {y};
}

// dx[b, t, …] = t is index[b] ? g[b, …] : 0.
Gradients take_row_gradient(GradientCall& call) {
  const Type& x = call.operand_type(0);
  const Value g = *call.cotangent(0);
  const int batch[] = {0};
  std::vector<int> but_rows = {0};
  for (int dim = 2; dim < x.ndim(); ++dim) but_rows.push_back(dim);
  const Value row = iota(call.graph(), x.with(DType::i32), 1);
  const Value taken = compare(row, broadcast(call.operand(1), row.type(), batch), "eq");
  return {select(taken, broadcast(g, x, but_rows), constant(call.graph(), x, 0)), std::nullopt};
}

// The letters of the dims after the second.
std::string inner_letters(const Type& type) { return ops::letters(type.ndim()).substr(2); }

void reference_take_row(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const std::int64_t rows = x.type.size(1), width = num_elements(Shape(x.type.shape.begin() + 2, x.type.shape.end()));
  for (std::int64_t b = 0; b < x.type.size(0); ++b) {
    const std::int64_t row = call.operands[1].integer(b);
    for (std::int64_t i = 0; i < width; ++i) {
      if (row >= 0 && row < rows) {
        ops::copy_element(x, (b * rows + row) * width + i, y, b * width + i);
      } else {
        y.set(b * width + i, Scalar(0));
      }
    }
  }
}

Work work_of_cache_write(const OpCall& call, std::span<const Type>) {
  Work work = moves(call.operands.subspan(1), {});
  work.written = call.operand(1).bytes();
  return work;
}

std::vector<Type> infer_cache_write(const OpCall& call) {
  if (call.num_operands() != 3)
    constraint("cache_write_c1", "cache_write takes cache, rows and position, got {} operands", call.num_operands());
  const Type &cache = call.operand(0), &rows = call.operand(1), &position = call.operand(2);
  if (cache.ndim() < 2 || !(position == Type(DType::i32, {cache.shape[0]}))) {
    constraint("cache_write_c1", "cache_write to {} at {}", to_string(cache), to_string(position));
  }
  Type like = rows;
  if (rows.ndim() == cache.ndim()) like.shape[1] = cache.shape[1];
  if (!(like == cache)) constraint("cache_write_c2", "cache_write of {} to {}", to_string(rows), to_string(cache));
  return {cache};
}

void reference_cache_write(const ReferenceCall& call) {
  const TensorView &cache = call.operands[0], &rows = call.operands[1], &y = call.results[0];
  for (std::int64_t i = 0; i < y.type.num_elements(); ++i) ops::copy_element(cache, i, y, i);
  const std::int64_t length = cache.type.size(1), count = rows.type.size(1);
  const std::int64_t width = num_elements(Shape(cache.type.shape.begin() + 2, cache.type.shape.end()));
  for (std::int64_t b = 0; b < cache.type.size(0); ++b) {
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t row = call.operands[2].integer(b) + t;
      if (row < 0 || row >= length) continue;
      for (std::int64_t i = 0; i < width; ++i)
        ops::copy_element(rows, (b * count + t) * width + i, y, (b * length + row) * width + i);
    }
  }
}

}  // namespace

namespace ops {

std::vector<OpDef> cache_ops() {
  OpDef take;
  take.name = "take_row";
  take.summary = "y[b, ...] = x[b, index[b], ...], zeros when index[b] is outside";
  take.signature = "(x: any[b, t, ...], index: i32[b]) -> (y: x's type[b, ...])";
  take.infer = infer_take_row;
  take.gradient = take_row_gradient;
  take.work = only_moves;
  take.sharding = [](const OpCall& call) {
    const std::string inner = inner_letters(call.operand(0));
    return sharding_rule("ab" + inner + ",a->a" + inner, "", "b");
  };
  take.reference = reference_take_row;

  OpDef write;
  write.name = "cache_write";
  write.summary = "the cache with rows[b, t, ...] at [b, position[b] + t, ...]; rows outside are dropped";
  write.signature = "(cache: any[b, s, ...], rows: cache's type[b, t, ...], position: i32[b]) -> (y: like cache)";
  write.infer = infer_cache_write;
  write.work = work_of_cache_write;
  write.sharding = [](const OpCall& call) {
    const std::string inner = inner_letters(call.operand(0));
    return sharding_rule("ab" + inner + ",aB" + inner + ",a->ab" + inner, "", "bB");
  };
  write.reference = reference_cache_write;
  write.in_place = {{0, 0}};
  return {take, write};
}

}  // namespace ops

Value take_row(Value x, Value index) { return x.graph->apply("take_row", std::array{x, index})[0]; }

Value cache_write(Value cache, Value rows, Value position) {
  return cache.graph->apply("cache_write", std::array{cache, rows, position})[0];
}

}  // namespace systole
