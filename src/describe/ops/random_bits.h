#pragma once
// The random bits of an element depend on its position in the unsharded global batch only. Layout, microbatch,
// recompute and backend do not change them. This is the contract of every kernel, to the bit:
//
//   place  = row · elements_per_row + index    row: global index of the operand's first row on its outermost dim;
//                                              elements_per_row: product of the other sizes; index: in the operand.
//                                              A scalar has place 0.
//            with places[t], for x[b, t, …] with tokens of a row of `length` tokens in any order:
//            ((row + b) · length + places[t]) · elements_per_token + index in the token
//   word   = Philox4x32-10(key = seed, counter = {place/4 low, place/4 high, site low, step low})[place mod 4]
//
// in 32-bit words; four consecutive elements share one call. `site` distinguishes the ops of a model.

#include "describe/ir/op.h"
#include "ground/base/philox.h"

namespace systole::ops {

struct PlaceBits {
  std::uint64_t seed = 0, step = 0, site = 0;

  PhiloxBlock block(std::uint64_t quad) const {
    return philox(seed, philox_counter(quad, (step << 32) | (site & 0xffffffffu)));
  }
  std::uint32_t word(std::uint64_t place) const { return block(place / 4)[place % 4]; }
};

// Place of the operand's element 0. REQUIRES: row ≥ 0.
inline std::uint64_t first_place(const Shape& shape, std::int64_t row) {
  if (shape.empty()) return 0;
  return static_cast<std::uint64_t>(row) *
         static_cast<std::uint64_t>(num_elements(Shape(shape.begin() + 1, shape.end())));
}

// Whether dropout keeps an element: u ≥ rate with u = (word >> 8) / 2^24, compared in double.
inline bool kept(std::uint32_t word, double rate) { return static_cast<double>(uniform_f32(word)) >= rate; }

// Checks the operands of ops with random bits: x, seed, step, site, row (the last four i64[]), and `more` others.
// Errors: Failure(invalid) `<label>: …`.
void check_key(const OpCall& call, const char* label, int more = 0);
PlaceBits place_bits(const ReferenceCall& call);
std::int64_t first_row(const ReferenceCall& call);
// Dim 0 is sharded by a local rewrite, which adds the offset to `row`. The other dims are replicated, because places
// count them; with places as sixth operand, the dim of tokens passes.
ShardingRule random_sharding(const OpCall& call);
Graph random_rewrite(const OpCall& local);

}  // namespace systole::ops
