#include "describe/ops/testing/list.h"

namespace systole {

// Types do not depend on the float type of the other ops' cases: x and scales are f32.
OpCases cases::int8_cases(DType) {
  const DType f = DType::f32, w = DType::i8;
  OpCases cases;
  auto good = [&](CaseOperand x, std::int64_t n, const char* note = "") {
    const std::int64_t k = x.type.shape.back();
    cases.good.push_back({.op = "contract_int8",
                          .operands = {std::move(x), whole(Type(w, {n, k}), -127, 128), real(Type(f, {n}), 0.001, 1)},
                          .note = note,
                          .reduction = k});
  };
  good(real(Type(f, {6, 12})), 18);
  good(real(Type(f, {3, 4, 65})), 33, "past a block");
  good(real(Type(f, {5})), 3, "one row");
  good(given(Type(f, {3, 5}), {0, 0, 0, 0, 0, 1, -2, 3, -4, 5, 0.5, -0.5, 1.5, 127, 2.5}), 4, "zeros, ties");
  good(given(Type(f, {3, 4}), {1e-31, -1e-31, 0, 1e-40, 3e38, -3e38, 1, 0, 1e-30, 0, 0, -1e-30}), 5, "far from 1");
  good(special(Type(f, {6, 24})), 7, "special values");
  good(real(Type(f, {3, 0})), 4, "a sum of nothing");
  good(real(Type(f, {4, 8})), 0, "no results");

  auto look = [&](std::int64_t v, std::int64_t e, CaseOperand ids, const char* note) {
    cases.good.push_back({.op = "embedding_int8",
                          .operands = {whole(Type(w, {v, e}), -127, 128), real(Type(f, {v}), 0.001, 1), std::move(ids)},
                          .note = note});
  };
  look(18, 12, whole(Type(DType::i32, {6, 24}), 0, 18), "cut");
  look(7, 5, whole(Type(DType::i32, {3, 4}), -2, 9), "some ids outside");
  look(30, 5, given(Type(DType::i32, {9}), {4}), "one id many times");

  const Type x(f, {3, 4}), weights(w, {5, 4}), scale(f, {5}), ids(DType::i32, {3});
  auto bad = [&](const char* label, const char* op, std::vector<Type> operands) {
    cases.bad.push_back({.label = label, .op = op, .operands = std::move(operands)});
  };
  bad("contract_int8_c1", "contract_int8", {x, weights});
  bad("contract_int8_c1", "contract_int8", {x.with(DType::bf16), weights, scale});
  bad("contract_int8_c1", "contract_int8", {Type(f, {}), weights, scale});
  bad("contract_int8_c2", "contract_int8", {x, weights.with(DType::u8), scale});
  bad("contract_int8_c2", "contract_int8", {x, Type(w, {4, 5}), scale});
  bad("contract_int8_c2", "contract_int8", {Type(f, {1, 132'104}), Type(w, {5, 132'104}), scale});
  bad("contract_int8_c3", "contract_int8", {x, weights, Type(f, {4})});
  bad("contract_int8_c3", "contract_int8", {x, weights, scale.with(DType::bf16)});
  bad("embedding_int8_c1", "embedding_int8", {weights.with(f), scale, ids});
  bad("embedding_int8_c1", "embedding_int8", {weights, Type(f, {4}), ids});
  bad("embedding_int8_c2", "embedding_int8", {weights, scale, ids.with(DType::i64)});
  return cases;
}

}  // namespace systole
