// The gradient of attention (describe/ops/attention.cc): the weights of a block are recomputed from q, k and lse, and
// Δ_i = o_i·g_i once for all (Dao, arXiv:2307.08691).
//
//   p = e^(s - lse)     dv += pᵀ g     ds = p (g vᵀ - Δ)     dq += scale ds k     dk += scale dsᵀ q
//
// As in the forward pass, rows are the outer loop. dq is carried along a row; dk and dv of the group's kv_heads are
// carried whole, in f32 (f64 for f64). All products take the operands' type.

#include "describe/stablehlo/attention_grad.h"

#include <array>

#include "describe/stablehlo/attention_cudnn.h"
#include "describe/stablehlo/attention_scores.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

// Inputs of a group, or of a block of it.
struct Queries {
  Ssa q, g, lse, delta;
};
struct Keys {
  Ssa k, v;
};
struct BlockGrads {
  Ssa dq, dk, dv;
  std::optional<Ssa> of_scores;
};

class Backward {
 public:
  Backward(Builder& b, const NodeCall& call)
      : call_(call),
        scores_(b, call, 6),
        cut_(scores_.cut()),
        queries_(laid_out(b)),
        keys_{scores_.keys_laid_out(b, call.operands[1]), scores_.keys_laid_out(b, call.operands[2])} {}

  std::vector<Ssa> run(Builder& b) const {
    std::vector<Ssa> wholes{b.constant(queries_.q.type, 0), b.constant(keys_.k.type, 0), b.constant(keys_.v.type, 0)};
    for (const Ssa& table : scores_.table_gradient(b)) wholes.push_back(table);
    const std::vector<Ssa> made = for_each_group(b, cut_, wholes, [&](Builder& in, const GroupPlace& at, Carries now) {
      std::vector<Ssa> next = group(in, at, now.subspan(3));
      const Part part[] = {{0, at.entry, cut_.batch}, {1, at.head, cut_.heads}};
      for (std::size_t i = 0; i < 3; ++i) next[i] = with_part(in, now[i], next[i], part);
      return next;
    });
    std::vector<Ssa> results{scores_.queries_back(b, made[0], call_.results[0]),
                             scores_.keys_back(b, made[1], call_.results[1]),
                             scores_.keys_back(b, made[2], call_.results[2])};
    if (made.size() > 3) results.push_back(scores_.bias_gradient(b, made[3]));
    return results;
  }

 private:
  // A query without visible keys has lse -inf; replaced by +inf it gives weights of 0.
  Queries laid_out(Builder& b) const {
    const Ssa &q = call_.operands[0], &o = call_.operands[3], &lse = call_.operands[4], &g = call_.operands[5];
    const Ssa seeing = instead_of(b, lse, -kInfinity, kInfinity);
    const Ssa delta = reduce_last(b, "add", b.binary("multiply", wide(b, o), wide(b, g)));  // [b, t, h]
    const std::array order{0, 2, 1};
    return {scores_.queries_laid_out(b, q), scores_.queries_laid_out(b, g), scores_.rows_laid_out(b, seeing, kInfinity),
            scores_.rows_laid_out(b, b.transpose(delta, order), 0)};
  }

  // dq, dk and dv of a group, and the gradient of the table.
  std::vector<Ssa> group(Builder& b, const GroupPlace& at, Carries table) const {
    const Part part[] = {{0, at.entry, cut_.batch}, {1, at.head, cut_.heads}};
    const auto mine = [&](const Ssa& x) { return part_of(b, x, part); };
    const Queries queries{mine(queries_.q), mine(queries_.g), mine(queries_.lse), mine(queries_.delta)};
    const Keys keys{mine(keys_.k), mine(keys_.v)};
    const Type sums = keys.k.type.with(scores_.sum_dtype());
    std::vector<Ssa> carries{b.constant(queries.q.type, 0), b.constant(sums, 0), b.constant(sums, 0)};
    carries.insert(carries.end(), table.begin(), table.end());
    if (cut_.key_blocks > 1) carries.push_back(b.constant(block_of_queries(queries.q.type), 0));
    std::vector<Ssa> made = for_each_pair(b, cut_, carries, [&](Builder& in, const PairPlace& pair, Carries now) {
      return step(in, queries, keys, at, pair, now);
    });
    made.resize(3 + table.size());
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) made[i] = b.convert(made[i], keys.k.type.dtype);
    return made;
  }

  std::vector<Ssa> step(Builder& b, const Queries& all, const Keys& every, const GroupPlace& at, const PairPlace& pair,
                        Carries now) const {
    const Part rows[] = {{3, pair.query, cut_.queries}}, columns[] = {{2, pair.key, cut_.keys}};
    const Queries queries{part_of(b, all.q, rows), part_of(b, all.g, rows), part_of(b, all.lse, rows),
                          part_of(b, all.delta, rows)};
    const Keys keys{part_of(b, every.k, columns), part_of(b, every.v, columns)};
    const BlockGrads grads = block(b, queries, keys, at, pair);
    const auto add = [&](const Ssa& sums, const Ssa& term) {
      if (cut_.pairs() == 1) return term;
      return with_part(b, sums, b.binary("add", part_of(b, sums, columns), term), columns);
    };
    std::vector<Ssa> next{{}, add(now[1], grads.dk), add(now[2], grads.dv)};
    if (grads.of_scores) next.push_back(scores_.add_to_table(b, now[3], *grads.of_scores, at, pair));
    Ssa dq = grads.dq;
    if (pair.fresh) {
      const Ssa before = b.select(b.splat(*pair.fresh, dq.type), fill_like(b, dq, 0), now.back());
      dq = b.binary("add", before, dq);
      next.push_back(dq);
    }
    next[0] = write_when_done(b, pair, now.first(1), [&](Builder& in) {
      return std::vector<Ssa>{with_part(in, now[0], in.convert(dq, all.q.type.dtype), rows)};
    })[0];
    return next;
  }

  BlockGrads block(Builder& b, const Queries& queries, const Keys& keys, const GroupPlace& at,
                   const PairPlace& pair) const {
    const DType sum = scores_.sum_dtype(), narrow = queries.q.type.dtype;
    const Ssa scores = scores_.of(b, queries.q, keys.k, at, pair);
    const Ssa e = b.unary("exponential", b.binary("subtract", scores, along_rows(b, queries.lse, scores.type)));
    const std::optional<Ssa> seen = scores_.seen(b, at, pair);
    const Ssa p = seen ? b.select(*seen, e, fill_like(b, e, 0)) : e;
    const Ssa dp = b.dot(queries.g, keys.v, {{0, 1}, {0, 1}, {4}, {3}}, sum);
    const Ssa ds = b.binary("multiply", p, b.binary("subtract", dp, along_rows(b, queries.delta, dp.type)));
    const Ssa p_narrow = b.convert(p, narrow), ds_narrow = b.convert(ds, narrow);
    const Builder::DotDims over_keys{{0, 1}, {0, 1}, {4}, {2}}, over_queries{{0, 1}, {0, 1}, {2, 3}, {2, 3}};
    BlockGrads grads{scaled(b, b.dot(ds_narrow, keys.k, over_keys, sum), scores_.flags().scale),
                     scaled(b, b.dot(ds_narrow, queries.q, over_queries, sum), scores_.flags().scale),
                     b.dot(p_narrow, queries.g, over_queries, sum),
                     {}};
    if (scores_.flags().bias >= 0) grads.of_scores = ds;
    return grads;
  }

  Type block_of_queries(Type type) const {
    type.shape[3] = cut_.queries;
    return type.with(scores_.sum_dtype());
  }

  const NodeCall& call_;
  const AttentionScores scores_;
  const AttentionCut& cut_;
  const Queries queries_;
  const Keys keys_;
};

}  // namespace

std::vector<Ssa> attention_grad_lowering(Builder& b, const NodeCall& call) {
  if (goes_to_cudnn(call, 6)) return attention_grad_by_cudnn(b, call);
  if (call.operands[0].type.num_elements() > 0) return Backward(b, call).run(b);
  std::vector<Ssa> none;  // no queries
  for (const Type& type : call.results) none.push_back(b.constant(type, 0));
  return none;
}

}  // namespace systole::stablehlo
