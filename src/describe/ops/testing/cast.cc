#include "describe/ops/testing/list.h"

namespace systole::cases {

OpCases cast_cases(DType f) {
  OpCases cases;
  auto to = [](DType dtype) { return Attrs{{"dtype", std::string(name_of(dtype))}}; };
  cases.good.push_back({.op = "cast", .operands = {real(Type(f, {6, 12}))}, .attrs = to(f), .note = "to itself"});
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::boolean}) {
    cases.good.push_back(
        {.op = "cast", .operands = {real(Type(f, {3, 7, 5}), -3, 3)}, .attrs = to(dtype), .gradient = false});
    cases.good.push_back(
        {.op = "cast", .operands = {special(Type(f, {25}))}, .attrs = to(dtype), .note = "special", .gradient = false});
  }
  for (const DType dtype : {DType::i32, DType::i64, DType::boolean, DType::bf16}) {
    cases.good.push_back(
        {.op = "cast", .operands = {whole(Type(dtype, {6, 12}), 0, 7)}, .attrs = to(f), .gradient = false});
  }
  cases.good.push_back({.op = "cast",
                        .operands = {real(Type(f, {3, 0}))},
                        .attrs = to(DType::bf16),
                        .note = "empty",
                        .gradient = false});
  cases.bad.push_back({.label = "cast_c1", .op = "cast", .operands = {Type(f, {3}), Type(f, {3})}, .attrs = to(f)});

  const CaseOperand seed = given(Type(DType::i64, {}), {77}), step = given(Type(DType::i64, {}), {5}),
                    site = given(Type(DType::i64, {}), {3});
  const CaseOperand row = given(Type(DType::i64, {}), {9});
  for (const Shape& shape : {Shape{6, 12}, Shape{3, 7, 5}, Shape{}, Shape{0, 3}}) {
    cases.good.push_back(
        {.op = "stochastic_round", .operands = {real(Type(f, shape)), seed, step, site, row}, .gradient = false});
  }
  cases.good.push_back({.op = "stochastic_round",
                        .operands = {special(Type(f, {25})), seed, step, site, row},
                        .note = "special",
                        .gradient = false});
  const Type i64(DType::i64, {});
  cases.bad.push_back({.label = "stochastic_round_c1",
                       .op = "stochastic_round",
                       .operands = {Type(DType::i32, {3}), i64, i64, i64, i64}});
  cases.bad.push_back(
      {.label = "stochastic_round_c2", .op = "stochastic_round", .operands = {Type(f, {3}), i64, i64, i64}});
  return cases;
}

}  // namespace systole::cases
