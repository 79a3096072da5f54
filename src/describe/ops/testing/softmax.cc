#include <limits>

#include "describe/ops/testing/list.h"

namespace systole {

OpCases cases::softmax_cases(DType f) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  OpCases cases;
  auto good = [&](CaseOperand x, const char* note, bool gradient = true) {
    cases.good.push_back(
        {.op = "softmax", .operands = {std::move(x)}, .note = note, .reduction = 18, .gradient = gradient});
  };
  good(real(Type(f, {6, 12, 18}), -3, 3), "cut");
  good(real(Type(f, {3, 5, 7}), -3, 3), "ragged");
  good(real(Type(f, {5}), -3, 3), "one row");
  good(real(Type(f, {5, 1})), "rows of one", false);
  good(real(Type(f, {5, 0})), "empty rows", false);
  good(given(Type(f, {3, 6}), {0, -inf, 1, 2, -inf, 1, -inf, -inf, -inf, -inf, -inf, -inf, 3, 2, 1, 0, -1, -inf}),
       "minus infinity", false);
  good(special(Type(f, {5, 17})), "special", false);
  cases.bad.push_back({.label = "softmax_c1", .op = "softmax", .operands = {Type(f, {})}});
  cases.bad.push_back({.label = "softmax_c1", .op = "softmax", .operands = {Type(f, {3}), Type(f, {3})}});
  cases.bad.push_back({.label = "softmax_c2", .op = "softmax", .operands = {Type(DType::i32, {3})}});
  return cases;
}

}  // namespace systole
