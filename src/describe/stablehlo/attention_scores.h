#pragma once
// Shared by attention and its gradient, for one pair of blocks: operand layouts, scores, masks, and the bias by
// distance with its gradient. A block of scores is [batch, heads, r, queries, keys] of a group.
//
// The bias of a block is constant along its diagonals, so a block needs a strip of queries + keys - 1 entries of the
// table. The table is the bias with its ends repeated, so a strip always lies within it. A strip expands to a block,
// and a block's gradient reduces to a strip's, without gathers: reshaping rows to a length of one more or less shifts
// each row by one.

#include <optional>

#include "describe/stablehlo/attention_blocks.h"

namespace systole::stablehlo {

class AttentionScores {
 public:
  // `first`: index of the first operand after q, k, v and the further inputs of the gradient.
  AttentionScores(Builder& b, const NodeCall& call, int first);

  const AttentionFlags& flags() const { return flags_; }
  const AttentionCut& cut() const { return cut_; }

  // q[b, t, h, d] to [b, n, r, t, d] and back; k[b, s, n, d] to [b, n, s, d] and back. Lengths are padded to whole
  // blocks and sliced back.
  Ssa queries_laid_out(Builder& b, const Ssa& q) const;
  Ssa keys_laid_out(Builder& b, const Ssa& k) const;
  Ssa rows_laid_out(Builder& b, const Ssa& lse, double value) const;  // [b, h, t] to [b, n, r, t]
  Ssa queries_back(Builder& b, const Ssa& q, const Type& type) const;
  Ssa keys_back(Builder& b, const Ssa& k, const Type& type) const;
  Ssa rows_back(Builder& b, const Ssa& lse) const;

  // scale q·k + bias, accumulated in the type of the statistics.
  Ssa of(Builder& b, const Ssa& q, const Ssa& k, const GroupPlace& group, const PairPlace& pair) const;
  // Mask of the pairs (query, key) that attend, in the shape of the scores; nothing: all.
  std::optional<Ssa> seen(Builder& b, const GroupPlace& group, const PairPlace& pair) const;

  // Initial sums for the gradient of the table; empty without a bias. add_to_table adds a block's score gradients.
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
  Ssa offsets(Builder& b, const GroupPlace& group) const;  // for the group's entries

  const AttentionFlags flags_;
  const AttentionCut cut_;
  DType sum_;
  Type bias_type_;
  std::optional<Ssa> q_segments_, k_segments_, offset_, table_;
};

}  // namespace systole::stablehlo
