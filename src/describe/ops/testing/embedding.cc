#include "describe/ops/last_dim.h"
#include "describe/ops/testing/list.h"

namespace systole {
namespace {

Attrs grad_attrs(std::int64_t vocab, DType dtype) {
  return {{"vocab", vocab}, {"dtype", std::string(name_of(dtype))}, {"vocab_name", std::string("vocab")}};
}

}  // namespace

OpCases cases::embedding_cases(DType f) {
  const DType s = ops::statistic_dtype(f);
  OpCases cases;
  auto good = [&](std::int64_t vocab, std::int64_t width, CaseOperand ids, const char* note) {
    Shape rows = ids.type.shape;
    rows.push_back(width);
    cases.good.push_back({.op = "embedding", .operands = {real(Type(f, {vocab, width})), ids}, .note = note});
    cases.good.push_back({.op = "embedding_grad",
                          .operands = {ids, real(Type(f, rows))},
                          .attrs = grad_attrs(vocab, s),
                          .note = note,
                          .reduction = 24});
  };
  good(18, 12, whole(Type(DType::i32, {6, 24}), 0, 18), "cut");
  good(7, 5, whole(Type(DType::i32, {3, 4}), -2, 9), "some ids outside");
  good(30, 5, given(Type(DType::i32, {9}), {4}), "one id many times");
  good(5, 3, whole(Type(DType::i32, {}), 2, 3), "one id");

  const Type table(f, {7, 5}), ids(DType::i32, {3, 4}), g(f, {3, 4, 5});
  cases.bad.push_back({.label = "embedding_c1", .op = "embedding", .operands = {Type(f, {7}), ids}});
  cases.bad.push_back({.label = "embedding_c2", .op = "embedding", .operands = {table, ids.with(DType::i64)}});
  cases.bad.push_back(
      {.label = "embedding_c2", .op = "embedding_grad", .operands = {ids.with(f), g}, .attrs = grad_attrs(7, s)});
  cases.bad.push_back({.label = "embedding_c3",
                       .op = "embedding_grad",
                       .operands = {ids, Type(f, {4, 3, 5})},
                       .attrs = grad_attrs(7, s)});
  cases.bad.push_back(
      {.label = "embedding_c4", .op = "embedding_grad", .operands = {ids, g}, .attrs = grad_attrs(0, s)});
  return cases;
}

}  // namespace systole
