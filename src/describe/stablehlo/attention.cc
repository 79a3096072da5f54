// attention (describe/ops/attention.cc), by blocks with an online softmax (Milakov and Gimelshein, arXiv:1805.02867;
// Dao et al., arXiv:2205.14135). For a block of queries, three values are carried over the blocks of keys and rescaled
// when m grows: m, the maximum score so far; l, the sum of e^(score - m); o, the sum of e^(score - m) v.
//
// Both products take the operands' type and accumulate in f32 (f64 for f64); weights are rounded to the operands' type
// for the second product. o / l and lse are written after the last block of a row.

#include <array>

#include "describe/stablehlo/attention_cudnn.h"
#include "describe/stablehlo/attention_grad.h"
#include "describe/stablehlo/attention_scores.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

// Running values of a block of queries, [batch, heads, r, queries]; o has a further dim d.
struct Running {
  Ssa m, l, o;
};

class Forward {
 public:
  Forward(Builder& b, const NodeCall& call)
      : call_(call),
        scores_(b, call, 3),
        cut_(scores_.cut()),
        q_(scores_.queries_laid_out(b, call.operands[0])),
        k_(scores_.keys_laid_out(b, call.operands[1])),
        v_(scores_.keys_laid_out(b, call.operands[2])) {}

  std::vector<Ssa> run(Builder& b) {
    const Type rows(scores_.sum_dtype(), {cut_.b, cut_.n, cut_.r, q_.type.size(3)});
    const std::array wholes{b.constant(q_.type, 0), b.constant(rows, 0)};
    const std::vector<Ssa> made = for_each_group(b, cut_, wholes, [&](Builder& in, const GroupPlace& at, Carries now) {
      const std::vector<Ssa> mine = group(in, at);
      const std::vector<Part> part = group_part(at);
      return std::vector<Ssa>{with_part(in, now[0], mine[0], part), with_part(in, now[1], mine[1], part)};
    });
    return {scores_.queries_back(b, made[0], call_.results[0]), scores_.rows_back(b, made[1])};
  }

 private:
  std::vector<Part> group_part(const GroupPlace& at) const {
    return {{0, at.entry, cut_.batch}, {1, at.head, cut_.heads}};
  }

  // o and lse of a group.
  std::vector<Ssa> group(Builder& b, const GroupPlace& at) const {
    const std::vector<Part> part = group_part(at);
    const Ssa q = part_of(b, q_, part), k = part_of(b, k_, part), v = part_of(b, v_, part);
    Type rows(scores_.sum_dtype(), {cut_.batch, cut_.heads, cut_.r, cut_.queries});
    std::vector<Ssa> carries{b.constant(q.type, 0), b.constant(lengthened(rows), 0)};
    if (cut_.key_blocks > 1) {
      for (const Type& type : {rows, rows, sums_type()}) carries.push_back(b.constant(type, 0));
    }
    std::vector<Ssa> made = for_each_pair(b, cut_, carries, [&](Builder& in, const PairPlace& pair, Carries now) {
      return step(in, q, k, v, at, pair, now);
    });
    made.resize(2);
    return made;
  }

  std::vector<Ssa> step(Builder& b, const Ssa& q, const Ssa& k, const Ssa& v, const GroupPlace& at,
                        const PairPlace& pair, Carries now) const {
    const Part queries[] = {{3, pair.query, cut_.queries}}, keys[] = {{2, pair.key, cut_.keys}};
    Ssa scores = scores_.of(b, part_of(b, q, queries), part_of(b, k, keys), at, pair);
    if (const std::optional<Ssa> seen = scores_.seen(b, at, pair))
      scores = b.select(*seen, scores, fill_like(b, scores, -kInfinity));
    const Running sums = add(b, scores, part_of(b, v, keys), pair, now);
    const Builder::Branch write = [&](Builder& in) {
      const Ssa divisor = instead_of(in, sums.l, 0, 1);
      const Ssa done = in.convert(in.binary("divide", sums.o, along_rows(in, divisor, sums.o.type)), q.type.dtype);
      const Ssa lse = in.binary("add", shift_of(in, sums.m), in.unary("log", sums.l));
      return std::vector<Ssa>{with_part(in, now[0], done, queries), with_part(in, now[1], lse, queries)};
    };
    std::vector<Ssa> next = write_when_done(b, pair, now.first(2), write);
    if (cut_.key_blocks > 1) next.insert(next.end(), {sums.m, sums.l, sums.o});
    return next;
  }

  // Adds a block of keys.
  Running add(Builder& b, const Ssa& scores, const Ssa& v, const PairPlace& pair, Carries now) const {
    Ssa m = reduce_last(b, "maximum", scores);
    std::optional<Running> before;
    if (pair.fresh) {
      const auto unless_fresh = [&](const Ssa& carried, double value) {
        return b.select(b.splat(*pair.fresh, carried.type), fill_like(b, carried, value), carried);
      };
      before = {unless_fresh(now[2], -kInfinity), unless_fresh(now[3], 0), unless_fresh(now[4], 0)};
      m = b.binary("maximum", before->m, m);
    }
    const Ssa shift = shift_of(b, m);
    const Ssa p = b.unary("exponential", b.binary("subtract", scores, along_rows(b, shift, scores.type)));
    Ssa l = reduce_last(b, "add", p);  // sums unrounded weights, so that lse keeps its precision
    Ssa o = b.dot(b.convert(p, v.type.dtype), v, {{0, 1}, {0, 1}, {4}, {2}}, scores_.sum_dtype());
    if (before) {
      const Ssa factor = b.unary("exponential", b.binary("subtract", before->m, shift));
      l = b.binary("add", b.binary("multiply", before->l, factor), l);
      o = b.binary("add", b.binary("multiply", before->o, along_rows(b, factor, o.type)), o);
    }
    return {m, l, o};
  }

  Type sums_type() const { return Type(scores_.sum_dtype(), {cut_.batch, cut_.heads, cut_.r, cut_.queries, cut_.d}); }
  Type lengthened(Type rows) const {
    rows.shape[3] = q_.type.size(3);
    return rows;
  }

  const NodeCall& call_;
  const AttentionScores scores_;
  const AttentionCut& cut_;
  const Ssa q_, k_, v_;
};

std::vector<Ssa> attention(Builder& b, const NodeCall& call) {
  if (goes_to_cudnn(call, 3)) return attention_by_cudnn(b, call);
  if (call.operands[0].type.num_elements() == 0)  // no queries
    return {b.constant(call.results[0], 0), b.constant(call.results[1], -kInfinity)};
  return Forward(b, call).run(b);
}

}  // namespace

std::vector<OpLowering> attention_lowerings() {
  return {{"attention", attention}, {"attention_grad", attention_grad_lowering}};
}

}  // namespace systole::stablehlo
