#pragma once
// Plans an einsum of two operands as matrix products. Its letters fall into batch (in a, b and y), M (a and y), N (b
// and y) and K (a and b). Letters that are adjacent in both their tensors are merged; the remaining ones become loops
// around one strided product, y[M, N] = Σ_K a[M, K] b[K, N]. If the letters of K are not adjacent, or an operand has no
// stride 1, that operand is first copied ("packed") into a suitable order. Planning needs no device.
//
//   "bse,ethd->tbshd"   M = bs, N = hd, K = e, loop over t; no copy
//   "tbshd,ethd->bse"   K = thd is not adjacent in a: a is packed to [b, s, t, h, d]

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

// The operands of the product. `swapped`: its left operand is b (and M consists of b's letters).
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
  std::int64_t points = 1;  // product of all letters' sizes: half the flops
};

// REQUIRES: describe/ops/contract.cc has checked `spec` against the shapes.
ContractPlan plan_contraction(const std::string& spec, const Shape& a, const Shape& b, const Shape& y);

}  // namespace systole::cpu
