#include <limits>

#include "describe/ops/last_dim.h"
#include "describe/ops/testing/list.h"

namespace systole {

// Labels from -1 (ignored) to past the vocabulary (of another shard).
OpCases cases::cross_entropy_cases(DType f) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const DType s = ops::statistic_dtype(f);
  OpCases cases;
  auto good = [&](CaseOperand logits, CaseOperand labels, const char* note, bool gradient = true) {
    const Type row = ops::without_last(logits.type, s);
    cases.good.push_back(
        {.op = "cross_entropy", .operands = {logits, labels}, .note = note, .reduction = 18, .gradient = gradient});
    cases.good.push_back({.op = "cross_entropy_grad",
                          .operands = {logits, labels, real(row, 0.5, 2), real(row)},
                          .note = note,
                          .reduction = 18});
  };
  good(real(Type(f, {6, 12, 18}), -3, 3), whole(Type(DType::i32, {6, 12}), -1, 18), "cut");
  good(real(Type(f, {3, 5, 7}), -3, 3), whole(Type(DType::i32, {3, 5}), -2, 9), "ragged, some labels past the end");
  good(real(Type(f, {5})), whole(Type(DType::i32, {}), 2, 3), "one row");
  good(given(Type(f, {4, 6}), {0,    -inf, 1,    2,    -inf, 1, -inf, -inf, -inf, -inf, -inf, -inf,
                               -inf, 2,    -inf, -inf, -inf, 3, 1,    1,    1,    1,    1,    1}),
       given(Type(DType::i32, {4}), {1, 2, 5, -1}), "minus infinity", false);
  good(special(Type(f, {5, 18})), whole(Type(DType::i32, {5}), -1, 18), "special", false);

  const Type logits(f, {3, 5}), labels(DType::i32, {3}), row(s, {3});
  cases.bad.push_back({.label = "cross_entropy_c1", .op = "cross_entropy", .operands = {logits}});
  cases.bad.push_back(
      {.label = "cross_entropy_c1", .op = "cross_entropy", .operands = {Type(DType::i32, {3, 5}), labels}});
  cases.bad.push_back(
      {.label = "cross_entropy_c2", .op = "cross_entropy", .operands = {logits, Type(DType::i64, {3})}});
  cases.bad.push_back(
      {.label = "cross_entropy_c2", .op = "cross_entropy", .operands = {logits, Type(DType::i32, {5})}});
  cases.bad.push_back(
      {.label = "cross_entropy_c3", .op = "cross_entropy_grad", .operands = {logits, labels, row, logits}});
  cases.bad.push_back({.label = "cross_entropy_c3",
                       .op = "cross_entropy_grad",
                       .operands = {logits, labels, row.with(DType::bf16), row}});
  return cases;
}

}  // namespace systole
