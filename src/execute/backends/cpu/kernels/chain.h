#pragma once
// A chain: a straight line of elementwise steps that runs on a block of elements at a time. Intermediate values are in
// registers of one block each that stay in the first-level cache, so memory is read and written once, whatever the
// length of the chain (as in numexpr). A single elementwise op is a chain of one.
//
// A step's value has an element type; bf16 values are rounded at every step, so fusion changes no bit. Roofline: bytes
// of the operands and results over the memory's rate, except for exp, tanh, erf, log (about 1 ns per 16 elements).

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

enum class ChainOp : std::uint8_t {
  load,
  store,
  constant,
  iota,
  cast,
  neg,
  exp,
  log,
  tanh,
  sigmoid,
  gelu,
  gelu_tanh,
  silu,
  relu,
  rsqrt,
  sqrt,
  is_finite,
  add,
  sub,
  mul,
  div,
  max,
  min,
  lt,
  le,
  gt,
  ge,
  eq,
  ne,
  logical_and,
  select,
  gelu_grad,
  gelu_tanh_grad,
  silu_grad,
};
constexpr int kNumChainOps = 34;

// Element i of the chain reads element (i / inner) % period of the operand. A vector along the last dim: inner 1. A
// column: inner = size of the following dims. A scalar: period 1. period 0: element i itself.
struct IndexPattern {
  std::int64_t inner = 1;
  std::int64_t period = 0;
};

constexpr int kMaxChainRegisters = 40;      // of f32, bf16, i32 and bool values
constexpr int kMaxChainWideRegisters = 40;  // of i64 values, numbered separately
constexpr int kMaxChainSlots = 64;

struct ChainStep {
  ChainOp op = ChainOp::load;
  Elem elem = Elem::f32;                      // of the value this step makes; store: of the memory
  Elem from = Elem::f32;                      // cast, compares, is_finite, select's branches: of the operands
  std::uint8_t dst = 0, a = 0, b = 0, c = 0;  // registers
  std::int32_t slot = 0;                      // load, store: index of the pointer
  IndexPattern pattern;                       // load: of the operand; iota: the value is (i / inner) % period
  double value = 0;                           // constant
};

// Flops and transcendentals per element, as the ops' `work` counts them.
struct ChainCost {
  int flops, transcendentals;
};
static inline constexpr ChainCost cost_of(ChainOp op) {
  switch (op) {
    case ChainOp::neg:
    case ChainOp::add:
    case ChainOp::sub:
    case ChainOp::mul:
    case ChainOp::div: return {1, 0};
    case ChainOp::exp:
    case ChainOp::log:
    case ChainOp::tanh:
    case ChainOp::rsqrt:
    case ChainOp::sqrt: return {0, 1};
    case ChainOp::sigmoid: return {3, 1};
    case ChainOp::gelu: return {4, 1};
    case ChainOp::gelu_tanh: return {8, 1};
    case ChainOp::silu: return {4, 1};
    case ChainOp::gelu_grad: return {9, 2};
    case ChainOp::gelu_tanh_grad: return {16, 1};
    case ChainOp::silu_grad: return {8, 1};
    default: return {0, 0};
  }
}

struct ChainArgs {
  const ChainStep* steps;  // loads before the stores that may overwrite what they read; stores last
  std::int64_t num_steps;
  void* const* pointers;  // by slot
  std::int64_t n;         // elements
  int threads;
};

}  // namespace systole::cpu
