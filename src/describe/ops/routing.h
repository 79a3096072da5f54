#pragma once
// The ops that move tokens to experts and back (docs/concepts/experts.md). As in ops.h, shapes are strict and errors
// are Failure(invalid), which names the violated constraint.

#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

// --- top_k.cc: the k largest of the last dim, largest first; of equal values the lower index first.
struct TopK {
  Value values, indices;  // x's type[..., k]; i32[..., k]
};
TopK top_k(Value x, std::int64_t k);

// --- route.cc: chosen i32[g, t, k], the experts that each token wants (-1: none) → which token gets which expert slot.
struct Routed {
  Value choice, token;  // i32[g, expert, capacity]: k · token + choice, and the token; -1: empty
  Value wanted;         // i32[g, expert]: how many wanted the expert, dropped ones included
};
Routed route(Value chosen, std::int64_t experts, std::int64_t capacity);

// --- rows.cc: x[B…, n, e] at rows i32[B…, M…] → [B…, M…, e]. A row outside [0, n) gives zeros.
Value gather_rows(Value x, Value rows);
// Its transpose: adds y[B…, M…, e] at rows i32[B…, M…] into [B…, size, e], in a fixed order. B… are `batch` dims.
Value scatter_rows(Value y, Value rows, int batch, std::int64_t size, DType dtype, const std::string& name);

// --- contract.cc: a contraction of buffers in which only `used` of `all` rows hold data, filled = {used, all}. Model
// FLOPs count the used rows. Empty: all rows are used.
Value contract_filled(Value a, Value b, std::string_view spec, const Ints& filled);

struct OpDef;
namespace ops {
std::vector<OpDef> routing_ops();  // all ops of this header; rows.cc
OpDef top_k_op();                  // top_k.cc
OpDef route_op();                  // route.cc
}  // namespace ops

}  // namespace systole
