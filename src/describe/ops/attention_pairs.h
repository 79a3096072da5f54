#pragma once
// Shared by attention and attention_grad: which keys a query sees, the work of a query-key pair, and how both ops are
// called. Formulas and constraints are in attention.cc. Private to this folder.

#include <algorithm>
#include <string>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/ops.h"
#include "describe/ops/zigzag.h"

namespace systole::ops {

constexpr int kForward = 3, kBackward = 6;  // number of operands before segments, offset and bias

struct AttentionSizes {
  std::int64_t b, t, s, h, n, d;
};
AttentionSizes sizes_of(const Type& q, const Type& k);

// Indices of the optional operands; -1 when absent.
struct AttentionMasks {
  int q_segments = -1, k_segments = -1, offset = -1, bias = -1, num_operands = 0;
  bool causal = false;
  std::int64_t origin = 0;  // where distance 0 lies in the bias
  std::int64_t window = 0;  // 0: none
  std::int64_t zigzag = 0;  // parts of the zigzag order; 0: rows in natural order
  bool ring = false;        // keys are sharded like queries
};

AttentionMasks masks_of(const Attrs& attrs, int first);

// FLOPs of one query-key pair.
std::int64_t forward_pair(const AttentionMasks& masks, std::int64_t d);
std::int64_t backward_pair(const AttentionMasks& masks, std::int64_t d);
// The width of a pair that counts as model work: d for q·k plus the data width of v; 2 d without `value`.
std::int64_t useful_width(const Attrs& attrs, std::int64_t d);
// Number of pairs that the shapes allow, over all batch entries and heads.
std::int64_t pairs_of(const AttentionMasks& masks, const AttentionSizes& z);

Type lse_type(const Type& q);
// Checks C1 to C5 and C7 to C12. Errors: Failure(invalid), which names the constraint.
void check_attention(const OpCall& call, int first);

// In sharding_rule's notation: the letter of the key dim, the operands after the first ones, and the replicated
// factors.
char key_factor(const AttentionMasks& masks);
std::string mask_notation(const AttentionMasks& masks);
std::string whole_factors(const AttentionMasks& masks);

std::vector<OpAttr> attention_attrs();
std::vector<Value> apply_attention(const char* name, std::vector<Value> operands, const AttentionOptions& options);

OpDef attention_grad_op();  // attention_grad.cc

// Tallies pairs that data masks as skipped.
void skip_pairs(std::int64_t pairs, std::int64_t flops);

// The operands of a call by name, and the keys that each query sees.
class AttentionCall {
 public:
  AttentionCall(const ReferenceCall& call, int first)
      : z(sizes_of(call.operands[0].type, call.operands[1].type)),
        q(call.operands[0]),
        k(call.operands[1]),
        v(call.operands[2]),
        scale(call.attrs.get_double("scale")),
        flops_forward(forward_pair(masks_of(call.attrs, first), z.d)),
        flops_backward(backward_pair(masks_of(call.attrs, first), z.d)),
        call_(call),
        masks_(masks_of(call.attrs, first)) {}

  // Bounds from shape alone: query i sees no key at or after keys(i), and at most allowed(i) keys.
  std::int64_t keys(std::int64_t i) const;
  std::int64_t allowed(std::int64_t i) const;
  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t place = in_row(i) + (masks_.offset >= 0 ? mask(masks_.offset, b) : 0);
    if (masks_.causal && in_row(j) > place) return false;
    if (masks_.window > 0 && place - j >= masks_.window) return false;
    if (masks_.q_segments < 0) return true;
    return mask(masks_.q_segments, b * z.t + i) == mask(masks_.k_segments, b * z.s + j);
  }
  // The score of a pair, and the index of its bias.
  Scalar score(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t a) const {
    const Scalar product = dot(q, query(b, i, a), k, key(b, j, a)) * scale;
    return has_bias() ? product + call_.operands[static_cast<std::size_t>(masks_.bias)].at(bias(b, i, j, a)) : product;
  }
  bool has_bias() const { return masks_.bias >= 0; }
  std::int64_t bias_size() const {
    return has_bias() ? call_.operands[static_cast<std::size_t>(masks_.bias)].type.num_elements() : 0;
  }
  std::int64_t bias(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t a) const {
    const std::int64_t m = bias_size() / z.h, offset = masks_.offset < 0 ? 0 : mask(masks_.offset, b);
    return a * m + std::clamp<std::int64_t>(j - i - offset + masks_.origin, 0, m - 1);
  }
  // Index of element 0 of a query, and of the key that query head a uses (grouped heads).
  std::int64_t query(std::int64_t b, std::int64_t i, std::int64_t a) const { return ((b * z.t + i) * z.h + a) * z.d; }
  std::int64_t key(std::int64_t b, std::int64_t j, std::int64_t a) const {
    return ((b * z.s + j) * z.n + a / (z.h / z.n)) * z.d;
  }
  std::int64_t row(std::int64_t b, std::int64_t i, std::int64_t a) const { return (b * z.h + a) * z.t + i; }  // of lse
  Scalar dot(const TensorView& x, std::int64_t at_x, const TensorView& y, std::int64_t at_y) const {
    Scalar sum(0);
    for (std::int64_t c = 0; c < z.d; ++c) sum += x.at(at_x + c) * y.at(at_y + c);
    return sum;
  }
  template <typename Visit>
  void for_each_query(Visit visit) const {
    for (std::int64_t b = 0; b < z.b; ++b) {
      for (std::int64_t i = 0; i < z.t; ++i) {
        for (std::int64_t a = 0; a < z.h; ++a) visit(b, i, a);
      }
    }
  }

  const AttentionSizes z;
  const TensorView &q, &k, &v;
  const Scalar scale;
  const std::int64_t flops_forward, flops_backward;  // FLOPs of one pair

 private:
  std::int64_t in_row(std::int64_t i) const { return masks_.zigzag == 0 ? i : zigzag_place(i, z.s, masks_.zigzag); }
  std::int64_t mask(int operand, std::int64_t at) const {
    return call_.operands[static_cast<std::size_t>(operand)].integer(at);
  }
  const ReferenceCall& call_;
  const AttentionMasks masks_;
};

}  // namespace systole::ops
