#pragma once
// The ops that bring tokens to experts and back, as functions (docs/concepts/experts.md). As in ops.h: shapes are
// strict, errors are Failure(invalid) that names the violated constraint.

#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

// --- top_k.cc: of the last dim, largest first; of equal ones the lower index first.
struct TopK {
  Value values, indices;  // x's type[..., k]; i32[..., k]
};
TopK top_k(Value x, std::int64_t k);

// --- route.cc: chosen i32[g, t, k] (experts that tokens want; -1: none) → who gets which of an expert's places.
struct Routed {
  Value choice, token;  // i32[g, expert, capacity]: k · token + choice, and the token; -1: empty
  Value wanted;         // i32[g, expert]: how many wanted the expert, those without a place too
};
Routed route(Value chosen, std::int64_t experts, std::int64_t capacity);

// --- rows.cc: x[B…, n, e] at rows i32[B…, M…] → [B…, M…, e]; a row outside [0, n) gives zeros.
Value gather_rows(Value x, Value rows);
// Its transpose: y[B…, M…, e] added up at rows i32[B…, M…] into [B…, size, e], of `batch` dims B…, in a fixed order.
Value scatter_rows(Value y, Value rows, int batch, std::int64_t size, DType dtype, const std::string& name);

// --- contract.cc: the contraction of buffers of which {used, all} of the rows hold anything; model FLOPs are those of
// the used ones. Empty: all are used.
Value contract_filled(Value a, Value b, std::string_view spec, const Ints& filled);

struct OpDef;
namespace ops {
std::vector<OpDef> routing_ops();  // all of them; rows.cc
OpDef top_k_op();                  // top_k.cc
OpDef route_op();                  // route.cc
}  // namespace ops

}  // namespace systole
