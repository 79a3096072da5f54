#include "describe/ops/testing/list.h"

namespace systole {

// Types do not depend on the float type of the other ops' cases.
OpCases cases::lora_cases(DType) {
  const DType f = DType::f32;
  OpCases cases;
  struct Sizes {
    std::int64_t b, s, i, o, k, r;
  };
  auto good = [&](const Sizes& n, CaseOperand which, const char* note) {
    which.type = Type(DType::i32, {n.b});
    cases.good.push_back({.op = "lora_rows",
                          .operands = {real(Type(f, {n.b, n.s, n.i})), real(Type(f, {n.b, n.s, n.o})),
                                       real(Type(f, {n.k, n.r, n.i})), real(Type(f, {n.k, n.r, n.o})), which},
                          .note = note,
                          .reduction = n.i + n.r});
  };
  const Type ids(DType::i32, {});
  good({6, 12, 5, 18, 3, 4}, whole(ids, 0, 4), "cut");
  good({7, 1, 65, 33, 4, 17}, given(ids, {0, 4, 1, 4, 3, 0, 2}), "past a vector");
  good({3, 4, 8, 5, 3, 6}, given(ids, {-1, 4, 2}), "some that name none");
  good({1, 3, 20, 7, 2, 64}, given(ids, {2}), "the largest rank");
  good({3, 4, 8, 5, 0, 6}, given(ids, {0, 1, 2}), "no adapters");
  good({6, 4, 12, 18, 3, 5}, given(ids, {0, 1, 2, 3, 1, 0}), "inputs of heads");
  cases.good.back().operands[0] = real(Type(f, {6, 4, 6, 2}));

  const Type x(f, {3, 4, 5}), y(f, {3, 4, 6}), a(f, {2, 7, 5}), b(f, {2, 7, 6}), which(DType::i32, {3});
  auto bad = [&](const char* label, std::vector<Type> operands) {
    cases.bad.push_back({.label = label, .op = "lora_rows", .operands = std::move(operands)});
  };
  bad("lora_rows_c1", {x, y, a, b});
  bad("lora_rows_c1", {x.with(DType::bf16), y, a, b, which});
  bad("lora_rows_c1", {x, Type(f, {3, 5, 6}), a, b, which});
  bad("lora_rows_c2", {x, y, Type(f, {2, 7, 4}), b, which});
  bad("lora_rows_c2", {Type(f, {3, 4, 5, 2}), y, a, b, which});
  bad("lora_rows_c2", {x, y, a, Type(f, {2, 6, 6}), which});
  bad("lora_rows_c2", {x, y, Type(f, {2, 65, 5}), Type(f, {2, 65, 6}), which});
  bad("lora_rows_c3", {x, y, a, b, which.with(DType::i64)});
  bad("lora_rows_c3", {x, y, a, b, Type(DType::i32, {4})});
  return cases;
}

}  // namespace systole
