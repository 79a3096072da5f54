#include "describe/ops/last_dim.h"
#include "describe/ops/testing/list.h"

namespace systole {
namespace {

Attrs scatter_attrs(std::int64_t batch, std::int64_t size, DType dtype) {
  return {{"batch", batch}, {"size", size}, {"dtype", std::string(name_of(dtype))}, {"name", std::string("seq")}};
}

}  // namespace

OpCases cases::rows_cases(DType f) {
  const DType s = ops::statistic_dtype(f);
  OpCases cases;
  auto good = [&](Shape batch, Shape more, std::int64_t n, std::int64_t width, CaseOperand rows, const char* note) {
    Shape x = batch, y = batch;
    x.insert(x.end(), {n, width});
    y.insert(y.end(), more.begin(), more.end());
    rows.type.shape = y;
    y.push_back(width);
    cases.good.push_back({.op = "gather_rows", .operands = {real(Type(f, x)), rows}, .note = note, .reduction = 24});
    cases.good.push_back({.op = "scatter_rows",
                          .operands = {real(Type(f, y)), rows},
                          .attrs = scatter_attrs(static_cast<std::int64_t>(batch.size()), n, s),
                          .note = note,
                          .reduction = 24});
  };
  const Type ids(DType::i32, {});
  good({6}, {12, 18}, 24, 6, whole(ids, 0, 24), "cut");
  good({3}, {4}, 7, 5, whole(ids, -2, 9), "some rows outside");
  good({3, 4}, {5}, 6, 1, whole(ids, 0, 6), "two dims of batches, rows of one");
  good({}, {9}, 5, 3, given(ids, {4}), "no batch, one row many times");
  good({3}, {}, 4, 5, whole(ids, 0, 4), "a row a batch");

  const Type x(f, {3, 7, 5}), rows(DType::i32, {3, 4}), y(f, {3, 4, 5});
  cases.bad.push_back({.label = "rows_c1", .op = "gather_rows", .operands = {Type(f, {7}), rows}});
  cases.bad.push_back({.label = "rows_c1", .op = "gather_rows", .operands = {x.with(DType::i32), rows}});
  cases.bad.push_back({.label = "rows_c2", .op = "gather_rows", .operands = {x, rows.with(DType::i64)}});
  cases.bad.push_back({.label = "rows_c2", .op = "gather_rows", .operands = {x, Type(DType::i32, {4, 3})}});
  cases.bad.push_back({.label = "rows_c3",
                       .op = "scatter_rows",
                       .operands = {Type(f, {4, 3, 5}), rows},
                       .attrs = scatter_attrs(1, 7, s)});
  cases.bad.push_back(
      {.label = "rows_c3", .op = "scatter_rows", .operands = {y, rows}, .attrs = scatter_attrs(3, 7, s)});
  cases.bad.push_back(
      {.label = "rows_c4", .op = "scatter_rows", .operands = {y, rows}, .attrs = scatter_attrs(1, 0, s)});
  return cases;
}

}  // namespace systole
