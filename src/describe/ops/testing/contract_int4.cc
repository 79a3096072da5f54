#include "describe/ops/testing/list.h"

namespace systole {

// Types do not depend on the float type of the other ops' cases: x is f32, scales f16.
OpCases cases::int4_cases(DType) {
  const DType f = DType::f32, w = DType::u8, h = DType::f16;
  OpCases cases;
  auto good = [&](CaseOperand x, std::int64_t panels, const char* note = "") {
    const std::int64_t k = x.type.shape.back(), groups = k / 32;
    cases.good.push_back({.op = "contract_int4",
                          .operands = {std::move(x), whole(Type(w, {panels, groups, 256}), 0, 256),
                                       real(Type(h, {panels, groups, 32}), -1, 1)},
                          .note = note,
                          .reduction = k});
  };
  good(real(Type(f, {6, 96})), 4);
  good(real(Type(f, {3, 4, 160})), 3, "rows in two dims");
  good(real(Type(f, {64})), 3, "one row");
  good(real(Type(f, {11, 32})), 1, "one group");
  good(given(Type(f, {3, 64}), {0, 0, 0, 0.5, -0.5, 1.5, 127, 2.5, 0, 0, 0}), 3, "zeros, ties");
  good(given(Type(f, {3, 96}), {1e-31, -1e-31, 0, 1e-40, 1e30, -1e30, 1}), 4, "far from 1");
  good(special(Type(f, {6, 96})), 3, "special values");
  good(real(Type(f, {3, 0})), 4, "a sum of nothing");
  good(real(Type(f, {4, 64})), 0, "no results");

  const Type x(f, {3, 64}), weights(w, {5, 2, 256}), scale(h, {5, 2, 32});
  auto bad = [&](const char* label, std::vector<Type> operands) {
    cases.bad.push_back({.label = label, .op = "contract_int4", .operands = std::move(operands)});
  };
  bad("contract_int4_c1", {x, weights});
  bad("contract_int4_c1", {x.with(DType::bf16), weights, scale});
  bad("contract_int4_c1", {Type(f, {}), weights, scale});
  bad("contract_int4_c1", {Type(f, {3, 48}), weights, scale});
  bad("contract_int4_c2", {x, weights.with(DType::i8), scale});
  bad("contract_int4_c2", {x, Type(w, {5, 3, 256}), scale});
  bad("contract_int4_c2", {x, Type(w, {5, 2, 128}), scale});
  bad("contract_int4_c3", {x, weights, Type(h, {4, 2, 32})});
  bad("contract_int4_c3", {x, weights, scale.with(f)});
  return cases;
}

}  // namespace systole
