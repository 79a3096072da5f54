#pragma once
// What attention and its gradient share within a pair of blocks: operands laid out, scores, masks, and the bias by
// distance with its gradient. Blocks of scores are [batch, heads, r, queries, keys] of a group.
//
// The bias of a block is constant along its diagonals: a strip of queries + keys - 1 places of the table, which is the
// bias with its ends repeated, so that a strip always lies within it. A block is made of a strip, and a strip's
// gradient of a block, by reshaping rows to a length of one more or less, which moves each by one: no gathers.

#include <optional>

#include "describe/stablehlo/attention_blocks.h"

namespace systole::stablehlo {

class AttentionScores {
 public:
  // `first`: the operand after q, k, v and what the gradient reads besides.
  AttentionScores(Builder& b, const NodeCall& call, int first);

  const AttentionFlags& flags() const { return flags_; }
  const AttentionCut& cut() const { return cut_; }

  // q[b, t, h, d] to [b, n, r, t, d] and back; k[b, s, n, d] to [b, n, s, d] and back; lengths filled up to whole
  // blocks and cut again.
  Ssa queries_laid_out(Builder& b, const Ssa& q) const;
  Ssa keys_laid_out(Builder& b, const Ssa& k) const;
  Ssa rows_laid_out(Builder& b, const Ssa& lse, double value) const;  // [b, h, t] to [b, n, r, t]
  Ssa queries_back(Builder& b, const Ssa& q, const Type& type) const;
  Ssa keys_back(Builder& b, const Ssa& k, const Type& type) const;
  Ssa rows_back(Builder& b, const Ssa& lse) const;

  // scale q·k + bias, accumulated in the statistics' type.
  Ssa of(Builder& b, const Ssa& q, const Ssa& k, const GroupPlace& group, const PairPlace& pair) const;
  // Which pairs see each other, in the scores' shape; nothing: all.
  std::optional<Ssa> seen(Builder& b, const GroupPlace& group, const PairPlace& pair) const;

  // The gradient of the table, which gathers those of scores; nothing without a bias.
  std::vector<Ssa> table_gradient(Builder& b) const;
  Ssa add_to_table(Builder& b, const Ssa& sums, const Ssa& of_scores, const GroupPlace& group,
                   const PairPlace& pair) const;
  Ssa bias_gradient(Builder& b, const Ssa& sums) const;

  Type scores_type() const;
  DType sum_dtype() const { return sum_; }

 private:
  std::int64_t strip() const { return cut_.queries + cut_.keys - 1; }
  Ssa strip_start(Builder& b, const GroupPlace& group, const PairPlace& pair) const;
  Ssa bias_block(Builder& b, const GroupPlace& group, const PairPlace& pair) const;
  Ssa offsets(Builder& b, const GroupPlace& group) const;  // of the group's entries

  const AttentionFlags flags_;
  const AttentionCut cut_;
  DType sum_;
  Type bias_type_;
  std::optional<Ssa> q_segments_, k_segments_, offset_, table_;
};

}  // namespace systole::stablehlo
