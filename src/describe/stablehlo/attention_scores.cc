#include "describe/stablehlo/attention_scores.h"

#include <algorithm>
#include <array>

#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 30;  // beyond any distance; twice it is still an i32

Ssa both(Builder& b, const std::optional<Ssa>& x, const Ssa& y) { return x ? b.binary("and", *x, y) : y; }

// Requests row-major order for x. Without it the compiler for TPUs keeps a projection's order, heads within a position,
// and must gather a block of one head's positions from all over memory (slicing cost more than the products). This is
// what jax's with_layout_constraint writes; every XLA resolves it to a copy or to nothing before code generation.
Ssa row_major(Builder& b, const Ssa& x) {
  return b.custom_call("LayoutConstraint", std::array{x}, std::array{x.type}, "")[0];
}

// Elements [start, limit) of the last dim.
Ssa cut_last(Builder& b, const Ssa& x, std::int64_t start, std::int64_t limit) {
  Shape low(x.type.shape.size(), 0), high = x.type.shape;
  low.back() = start;
  high.back() = limit;
  return b.slice(x, low, high);
}

Ssa pad_last(Builder& b, const Ssa& x, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> before(x.type.shape.size(), 0), after = before;
  before.back() = low;
  after.back() = high;
  return b.pad(x, b.constant(Type(x.type.dtype, {}), 0), before, after);
}

Ssa clamped(Builder& b, const Ssa& x, std::int64_t low, std::int64_t high) {
  const auto all = [&](std::int64_t value) { return b.integer(x.type, static_cast<std::uint64_t>(value)); };
  return b.binary("maximum", b.binary("minimum", x, all(high)), all(low));
}

// bias[n, r, m] with each end repeated `more` times.
Ssa with_repeated_ends(Builder& b, const Ssa& bias, std::int64_t more) {
  const std::int64_t m = bias.type.size(2);
  Type ends = bias.type;
  ends.shape[2] = more;
  const auto repeated = [&](std::int64_t place) {
    const int dims[] = {0, 1, 2};
    return b.broadcast(cut_last(b, bias, place, place + 1), ends, dims);
  };
  const Ssa parts[] = {repeated(0), bias, repeated(m - 1)};
  return b.concatenate(parts, 2);
}

}  // namespace

AttentionScores::AttentionScores(Builder& b, const NodeCall& call, int first)
    : flags_(call.node.attrs, first),
      cut_(flags_, call.operands[0].type, call.operands[1].type, call.around.options().attention_blocks),
      sum_(ops::statistic_dtype(call.operands[0].type.dtype)) {
  const auto operand = [&](int index) -> const Ssa& { return call.operands[static_cast<std::size_t>(index)]; };
  if (flags_.q_segments >= 0) {
    q_segments_ = filled_up(b, operand(flags_.q_segments), 1, cut_.query_blocks * cut_.queries, 0);
    k_segments_ = filled_up(b, operand(flags_.k_segments), 1, cut_.key_blocks * cut_.keys, 0);
  }
  if (flags_.offset >= 0) offset_ = clamped(b, operand(flags_.offset), -kFar, kFar);
  if (flags_.bias >= 0) {
    const Ssa& bias = operand(flags_.bias);
    bias_type_ = bias.type;
    table_ = with_repeated_ends(b, b.reshape(bias, {cut_.n, cut_.r, bias.type.size(1)}), strip());
  }
}

Ssa AttentionScores::queries_laid_out(Builder& b, const Ssa& q) const {
  const int order[] = {0, 2, 3, 1, 4};
  const Ssa grouped = b.reshape(q, {cut_.b, cut_.t, cut_.n, cut_.r, cut_.d});
  return row_major(b, filled_up(b, b.transpose(grouped, order), 3, cut_.query_blocks * cut_.queries, 0));
}

Ssa AttentionScores::keys_laid_out(Builder& b, const Ssa& k) const {
  const int order[] = {0, 2, 1, 3};
  return row_major(b, filled_up(b, b.transpose(k, order), 2, cut_.key_blocks * cut_.keys, 0));
}

Ssa AttentionScores::rows_laid_out(Builder& b, const Ssa& lse, double value) const {
  return filled_up(b, b.reshape(lse, {cut_.b, cut_.n, cut_.r, cut_.t}), 3, cut_.query_blocks * cut_.queries, value);
}

Ssa AttentionScores::queries_back(Builder& b, const Ssa& q, const Type& type) const {
  const std::vector<std::int64_t> start(5, 0), limit{cut_.b, cut_.n, cut_.r, cut_.t, cut_.d};
  const int order[] = {0, 3, 1, 2, 4};
  return b.reshape(b.transpose(limit == q.type.shape ? q : b.slice(q, start, limit), order), type.shape);
}

Ssa AttentionScores::keys_back(Builder& b, const Ssa& k, const Type& type) const {
  const std::vector<std::int64_t> start(4, 0), limit{cut_.b, cut_.n, cut_.s, cut_.d};
  const int order[] = {0, 2, 1, 3};
  return b.reshape(b.transpose(limit == k.type.shape ? k : b.slice(k, start, limit), order), type.shape);
}

Ssa AttentionScores::rows_back(Builder& b, const Ssa& lse) const {
  const Ssa whole = cut_.t == lse.type.size(3) ? lse : cut_last(b, lse, 0, cut_.t);
  return b.reshape(whole, {cut_.b, cut_.n * cut_.r, cut_.t});
}

Type AttentionScores::scores_type() const {
  return Type(sum_, {cut_.batch, cut_.heads, cut_.r, cut_.queries, cut_.keys});
}

Ssa AttentionScores::of(Builder& b, const Ssa& q, const Ssa& k, const GroupPlace& group, const PairPlace& pair) const {
  const Ssa products = scaled(b, b.dot(q, k, {{0, 1}, {0, 1}, {4}, {3}}, sum_), flags_.scale);
  return table_ ? b.binary("add", products, bias_block(b, group, pair)) : products;
}

Ssa AttentionScores::offsets(Builder& b, const GroupPlace& group) const {
  const Part entries[] = {{0, group.entry, cut_.batch}};
  return part_of(b, *offset_, entries);
}

std::optional<Ssa> AttentionScores::seen(Builder& b, const GroupPlace& group, const PairPlace& pair) const {
  const Type plane(DType::i32, {cut_.queries, cut_.keys}), planes(DType::i32, {cut_.batch, cut_.queries, cut_.keys});
  const auto across = [&](const Ssa& x, std::initializer_list<int> dims) {
    return b.broadcast(x, planes.with(x.type.dtype), std::vector<int>(dims));
  };
  const auto everywhere = [&](std::int64_t value) { return b.integer(plane, static_cast<std::uint64_t>(value)); };
  std::optional<Ssa> one, each;  // shared by all entries; per entry
  if (cut_.key_blocks * cut_.keys != cut_.s) {
    const Ssa key = b.binary("add", b.iota(plane, 1), b.splat(pair.key, plane));
    one = b.compare("LT", key, everywhere(cut_.s));
  }
  if (flags_.causal) {
    const Ssa begins = b.splat(b.binary("subtract", pair.key, pair.query), plane);
    const Ssa distance = b.binary("add", b.binary("subtract", b.iota(plane, 1), b.iota(plane, 0)), begins);
    const std::int64_t window = std::min(flags_.window, kFar);
    if (!offset_) {
      one = both(b, one, b.compare("LE", distance, everywhere(0)));
      if (window > 0) one = both(b, one, b.compare("GT", distance, everywhere(-window)));
    } else {
      const Ssa own = offsets(b, group), distances = across(distance, {1, 2});
      each = b.compare("LE", distances, across(own, {0}));
      const Ssa behind = b.binary("subtract", own, b.integer(own.type, static_cast<std::uint64_t>(window)));
      if (window > 0) each = both(b, each, b.compare("GT", distances, across(behind, {0})));
    }
  }
  if (q_segments_) {
    const Part q_part[] = {{0, group.entry, cut_.batch}, {1, pair.query, cut_.queries}};
    const Part k_part[] = {{0, group.entry, cut_.batch}, {1, pair.key, cut_.keys}};
    const Ssa q = across(part_of(b, *q_segments_, q_part), {0, 1});
    each = both(b, each, b.compare("EQ", q, across(part_of(b, *k_segments_, k_part), {0, 2})));
  }
  if (one && each) each = b.binary("and", *each, across(*one, {1, 2}));
  const Type scores = scores_type().with(DType::boolean);
  if (each) return b.broadcast(*each, scores, std::array{0, 3, 4});
  if (one) return b.broadcast(*one, scores, std::array{3, 4});
  return std::nullopt;
}

// The index in the table where a block's strip begins, clamped: beyond the ends all entries are equal.
Ssa AttentionScores::strip_start(Builder& b, const GroupPlace& group, const PairPlace& pair) const {
  Ssa start = b.binary("subtract", pair.key, pair.query);
  start = b.binary("add", start, number(b, flags_.origin - (cut_.queries - 1)));
  if (offset_) start = b.binary("subtract", start, b.reshape(offsets(b, group), {}));
  const std::int64_t places = bias_type_.size(1);
  return b.binary("add", clamped(b, start, -strip(), places), number(b, strip()));
}

// block[…, i, j] = strip[…, j - i + queries - 1]: rows of length strip + 1, read with length strip, shift by one each.
Ssa AttentionScores::bias_block(Builder& b, const GroupPlace& group, const PairPlace& pair) const {
  const std::int64_t heads = cut_.heads, r = cut_.r, queries = cut_.queries, length = strip();
  const Part parts[] = {{0, group.head, heads}, {2, strip_start(b, group, pair), length}};
  const Ssa row = pad_last(b, part_of(b, *table_, parts), 0, 1);
  const Ssa rows = b.broadcast(row, Type(row.type.dtype, {heads, r, queries, length + 1}), std::array{0, 1, 3});
  const Ssa line = cut_last(b, b.reshape(rows, {heads, r, queries * (length + 1)}), 0, queries * length);
  const Ssa skewed = b.reshape(line, {heads, r, queries, length});
  const Ssa block = cut_last(b, skewed, queries - 1, length);
  return b.broadcast(block, scores_type(), std::array{1, 2, 3, 4});
}

std::vector<Ssa> AttentionScores::table_gradient(Builder& b) const {
  if (!table_) return {};
  return {b.constant(table_->type, 0)};
}

// The transpose of bias_block: element j - i + queries - 1 of row i moves into the column of its diagonal.
Ssa AttentionScores::add_to_table(Builder& b, const Ssa& sums, const Ssa& of_scores, const GroupPlace& group,
                                  const PairPlace& pair) const {
  const std::int64_t heads = cut_.heads, r = cut_.r, queries = cut_.queries, length = strip();
  const Ssa block = b.reduce("add", of_scores, std::array{0});
  const Ssa line = b.reshape(pad_last(b, block, queries - 1, 0), {heads, r, queries * length});
  const Ssa rows = b.reshape(pad_last(b, line, 0, queries), {heads, r, queries, length + 1});
  const Ssa row = cut_last(b, b.reduce("add", rows, std::array{2}), 0, length);
  const Part parts[] = {{0, group.head, heads}, {2, strip_start(b, group, pair), length}};
  return with_part(b, sums, b.binary("add", part_of(b, sums, parts), row), parts);
}

// Sums each repeated end into the entry that it repeats.
Ssa AttentionScores::bias_gradient(Builder& b, const Ssa& sums) const {
  const std::int64_t places = bias_type_.size(1), more = strip();
  const auto end = [&](std::int64_t start, std::int64_t before) {
    const Ssa sum = b.reduce("add", cut_last(b, sums, start, start + more), std::array{2});
    return pad_last(b, b.reshape(sum, {cut_.n, cut_.r, 1}), before, places - 1 - before);
  };
  const Ssa ends = b.binary("add", end(0, 0), end(more + places, places - 1));
  return b.reshape(b.binary("add", cut_last(b, sums, more, more + places), ends), bias_type_.shape);
}

}  // namespace systole::stablehlo
