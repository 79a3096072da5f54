// The ops of a paged cache of keys and values (Kwon et al., "Efficient Memory Management for Large Language Model
// Serving with PagedAttention", SOSP 2023). The cache is a pool of pages of z positions. A sequence has a table: position
// j of entry b is row j mod z of page table[b, j / z]. Sequences with a common beginning may share pages.
//
//   page_write       the pool with rows[b, t, …] at positions position[b] + t of entry b
//   paged_attention  o_i = Σ_j p_ij v_j over the positions j ≤ i + offset[b] of entry b, as attention.cc defines it
//
// Rows at positions outside [0, m z) are dropped, and so are rows whose page is outside [0, p). Attention reads such a
// page as zeros: a table without entries for the positions that come later keeps the pages of others out.
//
// Constraints: page_write C1 table is i32[b, m] and position i32[b] for rows[b, t, …]. C2 rows have the pool's type but
// for the first two dims. paged_attention C1 q[b, t, h, d] and k, v[p, z, n, d] are floats with the same d; k and v
// are alike, of q's type or in bf16, with p and z at least 1. C2 n divides h. C3 table i32[b, m], offset i32[b]. C4 scale >
// 0. C5 window ≥ 1. No two rows of a page_write may have the same place.
//
// Work of page_write: the rows, read and written. Nothing else is moved where the result overwrites the pool; where it
// does not, the copy of the pool that comes first does not count. Work of paged_attention: that of attention with an
// offset over m z positions; the keys and values that tables point to are read, not the pool.
//
// Neither has a gradient: a cache is not trained. Sharding: heads pass.

#include <array>
#include <cmath>
#include <limits>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

std::vector<Type> infer_write(const OpCall& call) {
  if (call.num_operands() != 4)
    constraint("page_write_c1", "page_write takes pages, rows, table and position, got {} operands",
               call.num_operands());
  const Type &pages = call.operand(0), &rows = call.operand(1), &table = call.operand(2);
  if (rows.ndim() < 2 || table.ndim() != 2 || !(table == Type(DType::i32, {rows.size(0), table.size(1)})) ||
      !(call.operand(3) == Type(DType::i32, {rows.size(0)}))) {
    constraint("page_write_c1", "page_write of {} by {} at {}", to_string(rows), to_string(table),
               to_string(call.operand(3)));
  }
  Type like = rows;
  if (rows.ndim() == pages.ndim()) {
    like.shape[0] = pages.shape[0];
    like.shape[1] = pages.shape[1];
  }
  if (!(like == pages) || pages.size(1) == 0)
    constraint("page_write_c2", "page_write of {} to {}", to_string(rows), to_string(pages));
  return {pages};
}

Work work_of_write(const OpCall& call, std::span<const Type>) {
  Work work = moves(call.operands.subspan(1), {});
  work.written = call.operand(1).bytes();
  return work;
}

// The row of the pool, of p z, at a position; -1 where there is none.
std::int64_t place_of(const TensorView& table, std::int64_t b, std::int64_t at, std::int64_t p, std::int64_t z) {
  const std::int64_t m = table.type.size(1);
  if (at < 0 || at >= m * z) return -1;
  const std::int64_t page = table.integer(b * m + at / z);
  return page < 0 || page >= p ? -1 : page * z + at % z;
}

void reference_write(const ReferenceCall& call) {
  const TensorView &pages = call.operands[0], &rows = call.operands[1], &y = call.results[0];
  for (std::int64_t i = 0; i < y.type.num_elements(); ++i) ops::copy_element(pages, i, y, i);
  const std::int64_t count = rows.type.size(1),
                     width = num_elements(Shape(rows.type.shape.begin() + 2, rows.type.shape.end()));
  for (std::int64_t b = 0; b < rows.type.size(0); ++b) {
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t row =
          place_of(call.operands[2], b, call.operands[3].integer(b) + t, pages.type.size(0), pages.type.size(1));
      if (row < 0) continue;
      for (std::int64_t i = 0; i < width; ++i) ops::copy_element(rows, (b * count + t) * width + i, y, row * width + i);
    }
  }
}

struct PagedSizes {
  std::int64_t b, t, h, d, p, z, n, m;
  std::int64_t window;  // positions that a query sees at most
};

PagedSizes sizes_of(const OpCall& call) {
  const Type &q = call.operand(0), &k = call.operand(1), &table = call.operand(3);
  const std::int64_t all = table.size(1) * k.size(1);
  return {q.size(0),
          q.size(1),
          q.size(2),
          q.size(3),
          k.size(0),
          k.size(1),
          k.size(2),
          table.size(1),
          call.attrs.find("window") == nullptr ? all : std::min(all, call.attrs.get_int("window"))};
}

std::vector<Type> infer_attention(const OpCall& call) {
  if (call.num_operands() != 5)
    constraint("paged_attention_c1", "paged_attention takes q, k, v, table and offset, got {} operands",
               call.num_operands());
  const Type &q = call.operand(0), &k = call.operand(1), &v = call.operand(2), &table = call.operand(3);
  if (!is_float(q.dtype) || q.ndim() != 4 || k.ndim() != 4 || !(k == v) ||
      (k.dtype != q.dtype && k.dtype != DType::bf16) || k.size(3) != q.size(3) || k.size(0) == 0 || k.size(1) == 0) {
    constraint("paged_attention_c1", "q {}, k {}, v {}", to_string(q), to_string(k), to_string(v));
  }
  if (k.size(2) == 0 || q.size(2) % k.size(2) != 0)
    constraint("paged_attention_c2", "{} heads over {} kv_heads", q.size(2), k.size(2));
  if (table.ndim() != 2 || !(table == Type(DType::i32, {q.size(0), table.size(1)})) ||
      !(call.operand(4) == Type(DType::i32, {q.size(0)}))) {
    constraint("paged_attention_c3", "table {} and offset {} for q {}", to_string(table), to_string(call.operand(4)),
               to_string(q));
  }
  const double scale = call.attrs.get_double("scale");
  if (!(scale > 0)) constraint("paged_attention_c4", "scale is {}", scale);
  if (call.attrs.find("window") != nullptr && call.attrs.get_int("window") < 1)
    constraint("paged_attention_c5", "a window of {} keys", call.attrs.get_int("window"));
  return {q};
}

Work work_of_attention(const OpCall& call, std::span<const Type> results) {
  const PagedSizes s = sizes_of(call);
  const std::int64_t queries = s.b * s.h * s.t, pairs = queries * s.window;
  const Type seen(call.operand(1).dtype, {s.b, s.m * s.z, s.n, s.d});
  const Type operands[] = {call.operand(0), seen, seen, call.operand(3), call.operand(4)};
  Work work = moves(operands, results);
  work.flops = pairs * (4 * s.d + 3) + queries * s.d;
  work.transcendentals = pairs;
  work.model_flops = pairs * 4 * s.d;
  return work;
}

void reference_attention(const ReferenceCall& call) {
  const TensorView &q = call.operands[0], &k = call.operands[1], &v = call.operands[2], &table = call.operands[3];
  std::vector<Type> types;
  for (const TensorView& view : call.operands) types.push_back(view.type);
  const PagedSizes s = sizes_of({op_named("paged_attention"), call.attrs, types, {}});
  const Scalar scale(call.attrs.get_double("scale"));
  const std::int64_t window =
      call.attrs.find("window") == nullptr ? std::numeric_limits<std::int32_t>::max() : call.attrs.get_int("window");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  struct Pair {
    std::int64_t key;  // index of its element 0; -1 in a page outside
    Scalar score;
  };
  const auto element = [](const TensorView& pool, std::int64_t key, std::int64_t c) {
    return key < 0 ? Scalar(0) : pool.at(key + c);
  };
  const auto query = [&](std::int64_t b, std::int64_t i, std::int64_t a) {
    const std::int64_t at = ((b * s.t + i) * s.h + a) * s.d, place = i + call.operands[4].integer(b);
    std::vector<Pair> seen;
    Scalar top(-kInf), sum(0);
    for (std::int64_t j = std::max<std::int64_t>(0, place - window + 1); j <= place && j < s.m * s.z; ++j) {
      const std::int64_t row = place_of(table, b, j, s.p, s.z);
      const std::int64_t key = row < 0 ? -1 : (row * s.n + a / (s.h / s.n)) * s.d;
      Scalar product(0);
      for (std::int64_t c = 0; c < s.d; ++c) product += q.at(at + c) * element(k, key, c);
      seen.push_back({key, product * scale});
      top = max(top, seen.back().score);
    }
    const std::int64_t skipped = s.window - static_cast<std::int64_t>(seen.size());
    tally().skipped_flops += skipped * (4 * s.d + 3);
    tally().skipped_transcendentals += skipped;
    std::vector<Scalar> o(static_cast<std::size_t>(s.d));
    for (const Pair& pair : seen) {
      const Scalar p = exp(pair.score - top);
      sum += p;
      for (std::int64_t c = 0; c < s.d; ++c) o[static_cast<std::size_t>(c)] += p * element(v, pair.key, c);
    }
    const Scalar divisor = sum == Scalar(0) ? Scalar(1) : sum;
    for (std::int64_t c = 0; c < s.d; ++c) call.results[0].set(at + c, o[static_cast<std::size_t>(c)] / divisor);
  };
  for (std::int64_t b = 0; b < s.b; ++b) {
    for (std::int64_t i = 0; i < s.t; ++i) {
      for (std::int64_t a = 0; a < s.h; ++a) query(b, i, a);
    }
  }
}

}  // namespace

namespace ops {

std::vector<OpDef> paged_ops() {
  OpDef write;
  write.name = "page_write";
  write.summary = "the pool of pages with rows[b, t, ...] at positions position[b] + t of entry b's table";
  write.signature =
      "(pages: any[p, z, ...], rows: pages' type[b, t, ...], table: i32[b, m], position: i32[b]) -> (y: like pages)";
  write.infer = infer_write;
  write.work = work_of_write;
  write.sharding = [](const OpCall& call) {
    const std::string inner = ops::letters(call.operand(0).ndim()).substr(2);
    return sharding_rule("ab" + inner + ",AB" + inner + ",AC,A->ab" + inner, "", "abABC");
  };
  write.reference = reference_write;
  write.in_place = {{0, 0}};

  OpDef attention;
  attention.name = "paged_attention";
  attention.summary = "attention over keys and values in pages, named by a table per entry";
  attention.signature =
      "(q: float[b, t, h, d], k: q's type or bf16[p, z, n, d], v: like k, table: i32[b, m], offset: i32[b]) -> (o: "
      "like q)";
  attention.attrs = {{"scale", "double", "of the scores"},
                     {"window", "int", "key j is seen by query i when i + offset - j < window", false}};
  attention.infer = infer_attention;
  attention.work = work_of_attention;
  attention.sharding = [](const OpCall&) { return sharding_rule("bthd,pzhd,pzhd,bm,b->bthd", "", "btpzdm"); };
  attention.reference = reference_attention;
  attention.precision = PrecisionRule::mixed;
  return {write, attention};
}

}  // namespace ops

Value page_write(Value pages, Value rows, Value table, Value position) {
  return pages.graph->apply("page_write", std::array{pages, rows, table, position})[0];
}

Value paged_attention(Value q, Value k, Value v, Value table, Value offset, std::int64_t window) {
  Attrs attrs{{"scale", 1 / std::sqrt(static_cast<double>(q.type().size(3)))}};
  if (window != 0) attrs.set("window", window);
  return q.graph->apply("paged_attention", std::array{q, k, v, table, offset}, attrs)[0];
}

}  // namespace systole
