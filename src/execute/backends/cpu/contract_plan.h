#pragma once
// How an einsum of two operands becomes matrix products: its letters fall into batch (in a, b and y), M (a and y), N (b
// and y) and K (a and b), letters that lie one behind the other in both their tensors merge, and what is left over
// becomes loops around one strided product, y[M, N] = Σ_K a[M, K] b[K, N]. Where the letters of K do not lie together,
// or nothing of an operand has stride 1, that operand is first copied ("packed") into an order that suits. No device is
// needed to plan.
//
//   "bse,ethd->tbshd"   M = bs, N = hd, K = e, loop over t; nothing is copied
//   "tbshd,ethd->bse"   K = thd does not lie together in a: a is packed to [b, s, t, h, d]

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/tensor/shape.h"

namespace systole::cpu {

// A copy between a tensor and its packed form, row-major over `size`; strides are of the tensor, in elements.
struct Packing {
  std::vector<std::int64_t> size, stride;
  std::int64_t elements = 1;
};

struct ContractLoop {
  std::int64_t size;
  std::int64_t a, b, y;  // elements from one iteration to the next
};

// Operands as the product takes them: `swapped` means that its left operand is b (and M are b's letters).
struct ContractPlan {
  bool swapped = false;
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  // Strides in elements, of the tensor or of its packed form. One of the last two is 1; y's last is 1.
  struct {
    std::int64_t batch = 0, m = 1, k = 1;
  } left;
  struct {
    std::int64_t batch = 0, k = 1, n = 1;
  } right;
  struct {
    std::int64_t batch = 0, m = 1, n = 1;
  } out;
  std::vector<ContractLoop> loops;
  std::optional<Packing> pack_a, pack_b, pack_y;
  std::int64_t points = 1;  // of the space of all letters: half the flops
};

// `spec` as describe/graph/ops/contract.cc has checked it against the shapes.
ContractPlan plan_contraction(const std::string& spec, const Shape& a, const Shape& b, const Shape& y);

}  // namespace systole::cpu
