#include "describe/graph/ops/cases/list.h"

namespace systole::cases {

OpCases dropout_cases(DType f) {
  OpCases cases;
  auto number = [](double value) { return given(Type(DType::i64, {}), {value}); };
  auto rate = [](double r) { return Attrs{{"rate", r}}; };
  auto good = [&](Shape shape, double r, std::int64_t row, const char* note = "") {
    cases.good.push_back({.op = "dropout",
                          .operands = {real(Type(f, std::move(shape))), number(1234), number(7), number(2),
                                       number(static_cast<double>(row))},
                          .attrs = rate(r),
                          .note = note});
  };
  good({6, 12}, 0.25, 0);
  good({3, 7, 5}, 0.5, 11, "rows in the middle of a block");
  good({12, 5, 18}, 0.1, 3);
  good({}, 0.5, 4, "scalar");
  good({0, 3}, 0.5, 4, "empty");
  good({6, 3}, 0.0, 4, "keeps all");
  const Type i64(DType::i64, {});
  cases.bad.push_back({.label = "dropout_c1",
                       .op = "dropout",
                       .operands = {Type(DType::i32, {3}), i64, i64, i64, i64},
                       .attrs = rate(0.5)});
  cases.bad.push_back({.label = "dropout_c2",
                       .op = "dropout",
                       .operands = {Type(f, {3}), i64, i64, i64, Type(DType::i32, {})},
                       .attrs = rate(0.5)});
  cases.bad.push_back(
      {.label = "dropout_c3", .op = "dropout", .operands = {Type(f, {3}), i64, i64, i64, i64}, .attrs = rate(1.0)});
  return cases;
}

}  // namespace systole::cases
