#include "describe/ops/testing/list.h"

namespace systole::cases {

OpCases reduce_cases(DType f) {
  OpCases cases;
  auto over = [](Ints dims) { return Attrs{{"dims", std::move(dims)}}; };
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_min"}) {
    cases.good.push_back({.op = op, .operands = {real(Type(f, {6, 12, 18}))}, .attrs = over({1}), .reduction = 12});
    cases.good.push_back(
        {.op = op, .operands = {real(Type(f, {6, 12}))}, .attrs = over({0, 1}), .note = "all", .reduction = 72});
    cases.good.push_back(
        {.op = op, .operands = {real(Type(f, {3, 7, 5}))}, .attrs = over({0, 2}), .note = "ends", .reduction = 15});
    cases.good.push_back({.op = op, .operands = {real(Type(f, {3, 5}))}, .attrs = over({}), .note = "none"});
    cases.good.push_back({.op = op,
                          .operands = {whole(Type(DType::i32, {6, 12}), -9, 9)},
                          .attrs = over({1}),
                          .note = "integers",
                          .reduction = 12});
    cases.good.push_back({.op = op,
                          .operands = {special(Type(f, {3, 25}))},
                          .attrs = over({1}),
                          .note = "special",
                          .reduction = 25,
                          .gradient = false});
    cases.good.push_back({.op = op, .operands = {real(Type(f, {0, 5}))}, .attrs = over({1}), .note = "no rows"});
    cases.bad.push_back({.label = "reduce_c1", .op = op, .operands = {Type(f, {3, 4})}, .attrs = over({1, 0})});
    cases.bad.push_back({.label = "reduce_c1", .op = op, .operands = {Type(f, {3, 4})}, .attrs = over({2})});
    cases.bad.push_back({.label = "reduce_c2", .op = op, .operands = {Type(DType::boolean, {3})}, .attrs = over({0})});
  }
  Attrs to_f32 = over({0}), to_i32 = over({0, 1});
  to_f32.set("dtype", std::string("f32"));
  to_i32.set("dtype", std::string("i32"));
  cases.good.push_back({.op = "reduce_sum",
                        .operands = {real(Type(DType::bf16, {12, 6}))},
                        .attrs = to_f32,
                        .note = "wider",
                        .reduction = 12,
                        .gradient = false});
  cases.good.push_back(
      {.op = "reduce_sum", .operands = {flags({6, 12})}, .attrs = to_i32, .note = "how many", .reduction = 72});
  cases.good.push_back(
      {.op = "reduce_sum", .operands = {real(Type(f, {3, 0}))}, .attrs = over({1}), .note = "of nothing"});
  cases.bad.push_back({.label = "reduce_c3", .op = "reduce_max", .operands = {Type(f, {3, 0})}, .attrs = over({1})});

  cases.good.push_back({.op = "sum_of_squares", .operands = {real(Type(f, {6, 12}))}, .reduction = 72});
  cases.good.push_back({.op = "sum_of_squares", .operands = {real(Type(f, {}))}});
  cases.good.push_back({.op = "sum_of_squares", .operands = {real(Type(f, {0, 3}))}, .note = "empty"});
  const auto blocks = [](std::int64_t block, std::int64_t layers) {
    return Attrs{{"block", block}, {"layers", layers}};
  };
  cases.good.push_back({.op = "sum_of_squares",
                        .operands = {real(Type(f, {6, 12}))},
                        .attrs = blocks(5, 2),
                        .note = "by blocks of two layers",
                        .reduction = 5,
                        .gradient = false});
  cases.bad.push_back(
      {.label = "reduce_c4", .op = "sum_of_squares", .operands = {Type(f, {6, 12})}, .attrs = blocks(0, 2)});
  cases.bad.push_back(
      {.label = "reduce_c4", .op = "sum_of_squares", .operands = {Type(f, {6, 12})}, .attrs = blocks(5, 7)});
  cases.bad.push_back({.label = "reduce_c1", .op = "sum_of_squares"});
  cases.bad.push_back({.label = "reduce_c2", .op = "sum_of_squares", .operands = {Type(DType::i32, {3})}});
  return cases;
}

}  // namespace systole::cases
