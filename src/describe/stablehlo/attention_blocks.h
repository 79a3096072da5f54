#pragma once
// Attention by blocks. Queries and keys are laid out as [b, n, r, t, d] and [b, n, s, d] (n kv_heads, r query heads for
// each) and processed block by block, so no value holds t × s scores:
//   for each group of batch entries and kv_heads        as many as the score limit of one step allows
//     for each pair of blocks that shape lets through   row by row: all key blocks of a query block in turn
//
// The pairs are one loop whose trip count is known at lowering: it omits key blocks that a causal mask or a window
// hides completely. The next pair is computed from two carried numbers. Within a pair there is no loop.
//
// Lengths that are not a multiple of the block size are padded: padded queries are dropped, padded keys are masked.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {

// Indices of the optional operands, -1 if absent; describe/ops/attention.cc.
struct AttentionFlags {
  AttentionFlags(const Attrs& attrs, int first);

  bool causal;
  std::int64_t window = 0;  // 0: none
  std::int64_t origin = 0;  // index of distance 0 in the bias
  int q_segments = -1, k_segments = -1, offset = -1, bias = -1;
  double scale;
};

struct AttentionCut {
  AttentionCut(const AttentionFlags& flags, const Type& q, const Type& k, const AttentionBlocks& blocks);

  std::int64_t b, t, s, n, r, d;
  std::int64_t queries, keys;  // per block
  std::int64_t query_blocks, key_blocks;
  std::int64_t batch, heads;  // per group: batch entries, kv_heads
  bool causal;                // static causal mask: without offsets
  std::int64_t window;        // static window; 0: none

  std::int64_t groups() const { return b / batch * (n / heads); }
  // Key blocks of a query block: [first, last).
  std::int64_t first(std::int64_t block) const;
  std::int64_t last(std::int64_t block) const;
  std::int64_t pairs() const;  // number of block pairs
};

// Element indices where a group or a block begins, i32[].
struct GroupPlace {
  Ssa entry, head;
};
struct PairPlace {
  Ssa query, key;                  // first query, first key
  std::optional<Ssa> fresh, done;  // bool[]: first and last pair of a query block; nothing: every pair is both
};

using Carries = std::span<const Ssa>;
using GroupBody = std::function<std::vector<Ssa>(Builder&, const GroupPlace&, Carries)>;
using PairBody = std::function<std::vector<Ssa>(Builder&, const PairPlace&, Carries)>;
// Runs the body for each group, or for each pair of blocks, with carried values.
std::vector<Ssa> for_each_group(Builder& b, const AttentionCut& cut, Carries carries, const GroupBody& body);
std::vector<Ssa> for_each_pair(Builder& b, const AttentionCut& cut, Carries carries, const PairBody& body);

// The result of `write` at the last pair of a row, else `carried` unchanged.
std::vector<Ssa> write_when_done(Builder& b, const PairPlace& pair, Carries carried, const Builder::Branch& write);

// A slice of `size` elements from `start` along each given dim; x itself if the slice is all of it.
struct Part {
  int dim;
  Ssa start;
  std::int64_t size;
};
Ssa part_of(Builder& b, const Ssa& x, std::span<const Part> parts);
// x with that slice replaced by `part`.
Ssa with_part(Builder& b, const Ssa& x, const Ssa& part, std::span<const Part> parts);
// x with the dim padded to `size` with `value`.
Ssa filled_up(Builder& b, const Ssa& x, int dim, std::int64_t size, double value);
Ssa number(Builder& b, std::int64_t value);  // i32[]

}  // namespace systole::stablehlo
