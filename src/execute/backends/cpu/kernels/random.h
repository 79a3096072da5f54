#pragma once
// Ops with random bits. An element's 32 bits depend only on its place in the unsharded batch:
//   word = Philox4x32-10(key = seed, counter = {place / 4 (64 bits), site, step})[place mod 4],
//   place = row · elements_per_row + index; for tokens that are out of order, see TokenPlaces
// This is the contract of describe/ops/random_bits.h, bit for bit.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

struct RandomPlace {
  const std::int64_t *seed, *step, *site, *row;  // scalars, read when the kernel runs
  std::int64_t elements_per_row;                 // 0 for a scalar operand
};

// For x[b, t, …] whose tokens may be out of order: element k of token t of row b has the place
//   ((row + b) · length + places[t]) · elements_per_token + k
struct TokenPlaces {
  const std::int32_t* places = nullptr;  // null: in order
  std::int64_t tokens = 0, length = 0, elements_per_token = 0;
};

// y = x · (1 / (1 - rate)) where (word >> 8) / 2^24 ≥ rate, else 0; y may be x.
struct DropoutArgs {
  const void* x;
  void* y;
  Elem elem;
  std::int64_t n;
  RandomPlace place;
  double rate;
  int threads;
  TokenPlaces tokens = {};
};

// f32 or bf16 to bf16: the upper half of bits(|x|) + (word >> 16); infinities and NaN stay.
struct StochasticRoundArgs {
  const void* x;
  void* y;  // bf16
  Elem elem;
  std::int64_t n;
  RandomPlace place;
  int threads;
};

}  // namespace systole::cpu
