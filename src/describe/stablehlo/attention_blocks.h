#pragma once
// How attention is cut into blocks. Queries and keys are laid out as [b, n, r, t, d] and [b, n, s, d] (n kv_heads, r
// query heads for each) and met block by block, so that no value holds t × s scores:
//
//   for each group of batch entries and kv_heads        as many as one step may have scores of
//     for each pair of blocks that shape lets through   row by row: all blocks of keys of a block of queries in turn
//
// The pairs are one loop with a count that is known when the text is written: where a causal mask or a window hides a
// block of keys whole it is not in the list. Which pair is next is arithmetic on two carried numbers. What is within
// one block is written straight, without a loop.
//
// A length that blocks do not divide is filled up: with queries that are dropped, and keys that nobody sees.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {

// Operands after the first few, -1 without them; graph/ops/attention.cc.
struct AttentionFlags {
  AttentionFlags(const Attrs& attrs, int first);

  bool causal;
  std::int64_t window = 0;  // 0: none
  std::int64_t origin = 0;  // of the bias
  int q_segments = -1, k_segments = -1, offset = -1, bias = -1;
  double scale;
};

struct AttentionCut {
  AttentionCut(const AttentionFlags& flags, const Type& q, const Type& k, const AttentionBlocks& blocks);

  std::int64_t b, t, s, n, r, d;
  std::int64_t queries, keys;  // of a block
  std::int64_t query_blocks, key_blocks;
  std::int64_t batch, heads;  // of a group: entries, kv_heads
  bool causal;                // by shape: without offsets
  std::int64_t window;        // by shape; 0: none

  std::int64_t groups() const { return b / batch * (n / heads); }
  // Blocks of keys for a block of queries: [first, last).
  std::int64_t first(std::int64_t block) const;
  std::int64_t last(std::int64_t block) const;
  std::int64_t pairs() const;  // of blocks
};

// Numbers of elements where a block or a group begins, i32[].
struct GroupPlace {
  Ssa entry, head;
};
struct PairPlace {
  Ssa query, key;                  // the first of each
  std::optional<Ssa> fresh, done;  // bool[]: the first, the last pair of its queries; nothing: each is both
};

using Carries = std::span<const Ssa>;
using GroupBody = std::function<std::vector<Ssa>(Builder&, const GroupPlace&, Carries)>;
using PairBody = std::function<std::vector<Ssa>(Builder&, const PairPlace&, Carries)>;
// Runs the body for each group, or pair of blocks, over the carried values.
std::vector<Ssa> for_each_group(Builder& b, const AttentionCut& cut, Carries carries, const GroupBody& body);
std::vector<Ssa> for_each_pair(Builder& b, const AttentionCut& cut, Carries carries, const PairBody& body);

// What `write` makes of the carried values, at the last pair of a row; before, they stay.
std::vector<Ssa> write_when_done(Builder& b, const PairPlace& pair, Carries carried, const Builder::Branch& write);

// The part of `size` from `start` on along each named dim; x itself where it is all of it.
struct Part {
  int dim;
  Ssa start;
  std::int64_t size;
};
Ssa part_of(Builder& b, const Ssa& x, std::span<const Part> parts);
// x with `part` in that place.
Ssa with_part(Builder& b, const Ssa& x, const Ssa& part, std::span<const Part> parts);
// x with its dim filled up to `size`.
Ssa filled_up(Builder& b, const Ssa& x, int dim, std::int64_t size, double value);
Ssa number(Builder& b, std::int64_t value);  // i32[]

}  // namespace systole::stablehlo
