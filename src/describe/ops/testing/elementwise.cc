#include <cmath>

#include "describe/ops/testing/list.h"

namespace systole::cases {
namespace {

struct Row {
  const char* op;
  int arity;
  double low, high;  // where the op is smooth
  bool takes_special = true;
};

const Row kRows[] = {
    {"neg", 1, -2, 2},
    {"exp", 1, -2, 2},
    {"log", 1, 0.5, 3},
    {"tanh", 1, -2, 2},
    {"sigmoid", 1, -2, 2},
    {"gelu", 1, -3, 3},
    {"gelu_tanh", 1, -3, 3},
    {"silu", 1, -3, 3},
    {"relu", 1, -2, 2},
    {"rsqrt", 1, 0.5, 3},
    {"sqrt", 1, 0.5, 3},
    {"is_finite", 1, -2, 2},
    {"add", 2, -2, 2},
    {"sub", 2, -2, 2},
    {"mul", 2, -2, 2},
    {"div", 2, 0.5, 3},
    {"max", 2, -2, 2},
    {"min", 2, -2, 2},
    {"gelu_grad", 2, -3, 3, false},
    {"gelu_tanh_grad", 2, -3, 3, false},
    {"silu_grad", 2, -3, 3, false},
};

OpCase on(const Row& row, DType f, Shape shape, const char* note) {
  OpCase call{.op = row.op, .note = note};
  for (int i = 0; i < row.arity; ++i) call.operands.push_back(real(Type(f, shape), row.low, row.high));
  return call;
}

void add_row(OpCases& cases, const Row& row, DType f) {
  cases.good.push_back(on(row, f, {3, 7, 5}, "odd"));
  cases.good.push_back(on(row, f, {6, 12}, "even"));
  cases.good.push_back(on(row, f, {}, "scalar"));
  cases.good.push_back(on(row, f, {1}, "one element"));
  cases.good.push_back(on(row, f, {4, 0, 3}, "empty"));
  cases.good.push_back(on(row, f, {67}, "past a block"));
  if (!row.takes_special) return;
  OpCase call = on(row, f, {53}, "special");
  for (CaseOperand& operand : call.operands) operand = special(operand.type);
  if (row.arity == 2)
    call.operands[1] = given(Type(f, {53}), {0.5, -0.0, std::nan(""), -1e30, 3, HUGE_VAL, 0});  // 7 against 24
  call.gradient = false;
  cases.good.push_back(call);
}

}  // namespace

OpCases elementwise_cases(DType f) {
  OpCases cases;
  for (const Row& row : kRows) add_row(cases, row, f);
  for (const char* kind : {"lt", "le", "gt", "ge", "eq", "ne"}) {
    cases.good.push_back({.op = "compare",
                          .operands = {real(Type(f, {6, 12})), real(Type(f, {6, 12}))},
                          .attrs = {{"kind", std::string(kind)}}});
    cases.good.push_back({.op = "compare",
                          .operands = {whole(Type(DType::i32, {3, 5}), -2, 2), whole(Type(DType::i32, {3, 5}), -2, 2)},
                          .attrs = {{"kind", std::string(kind)}},
                          .note = "equals among them"});
    cases.good.push_back({.op = "compare",
                          .operands = {special(Type(f, {25})), given(Type(f, {25}), {0, 1e30, -1, std::nan("")})},
                          .attrs = {{"kind", std::string(kind)}},
                          .note = "special"});
  }
  cases.good.push_back({.op = "logical_and", .operands = {flags({6, 12}), flags({6, 12})}});
  cases.good.push_back({.op = "select", .operands = {flags({6, 12}), real(Type(f, {6, 12})), real(Type(f, {6, 12}))}});
  cases.good.push_back(
      {.op = "select", .operands = {flags({3, 0}), real(Type(f, {3, 0})), real(Type(f, {3, 0}))}, .note = "empty"});
  cases.good.push_back({.op = "select",
                        .operands = {flags({31}), special(Type(f, {31})), real(Type(f, {31}))},
                        .note = "special",
                        .gradient = false});
  for (const char* op : {"add", "sub", "mul", "max", "min"}) {
    cases.good.push_back({.op = op,
                          .operands = {whole(Type(DType::i32, {3, 5}), -9, 9), whole(Type(DType::i32, {3, 5}), -9, 9)},
                          .note = "integers"});
  }

  cases.bad.push_back({.label = "elementwise_c1", .op = "add", .operands = {Type(f, {3}), Type(f, {4})}});
  cases.bad.push_back({.label = "elementwise_c1", .op = "neg", .operands = {Type(f, {3}), Type(f, {3})}});
  cases.bad.push_back(
      {.label = "elementwise_c1", .op = "select", .operands = {Type(f, {3}), Type(f, {3}), Type(f, {3})}});
  cases.bad.push_back({.label = "elementwise_c2", .op = "exp", .operands = {Type(DType::i32, {3})}});
  cases.bad.push_back({.label = "elementwise_c2", .op = "logical_and", .operands = {Type(f, {3}), Type(f, {3})}});
  cases.bad.push_back({.label = "elementwise_c3",
                       .op = "compare",
                       .operands = {Type(f, {3}), Type(f, {3})},
                       .attrs = {{"kind", std::string("less")}}});
  return cases;
}

}  // namespace systole::cases
