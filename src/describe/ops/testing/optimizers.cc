#include "describe/ops/last_dim.h"
#include "describe/ops/testing/list.h"

namespace systole {
namespace {

CaseOperand one(DType dtype, double value) { return given(Type(dtype, {}), {value}); }

Attrs adamw_attrs(double beta1, double weight_decay) {
  return {{"beta1", beta1}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", weight_decay}};
}

Attrs sgd_attrs(double momentum, double weight_decay) {
  return {{"momentum", momentum}, {"weight_decay", weight_decay}};
}

}  // namespace

OpCases cases::adamw_cases(DType f) {
  const DType s = ops::statistic_dtype(f);
  OpCases cases;
  auto good = [&](const Shape& shape, DType gradient, double weight_decay, double count, bool apply, const char* note) {
    cases.good.push_back({.op = "adamw",
                          .operands = {real(Type(f, shape)), real(Type(gradient, shape)), real(Type(s, shape)),
                                       real(Type(s, shape), 0.1, 1), one(s, 0.25), one(s, 0.01), one(DType::i32, count),
                                       one(DType::boolean, apply ? 1 : 0)},
                          .attrs = adamw_attrs(0.9, weight_decay),
                          .note = note,
                          .reduction = 3});
  };
  good({6, 12, 18}, s, 0.1, 7, true, "cut");
  good({5, 7}, s, 0, 1, true, "first update, no decay");
  good({5, 7}, s, 0.1, 3, false, "not applied");
  good({5, 7}, DType::bf16, 0.1, 3, true, "bf16 gradient");
  good({}, s, 0.1, 100000, true, "scalar, late");

  const Type p(f, {3, 5}), m(s, {3, 5}), scalar(s, {}), count(DType::i32, {}), apply(DType::boolean, {});
  auto bad = [&](const char* label, std::vector<Type> operands, Attrs attrs) {
    cases.bad.push_back({label, "adamw", std::move(operands), std::move(attrs)});
  };
  bad("adamw_c1", {p, m, m, m, scalar, scalar, count}, adamw_attrs(0.9, 0));
  bad("adamw_c1", {p, Type(s, {5, 3}), m, m, scalar, scalar, count, apply}, adamw_attrs(0.9, 0));
  bad("adamw_c2", {p, m, m, m, scalar, scalar, scalar, apply}, adamw_attrs(0.9, 0));
  bad("adamw_c3", {p, m, m, m, scalar, scalar, count, apply}, adamw_attrs(1, 0));
  bad("adamw_c3", {p, m, m, m, scalar, scalar, count, apply}, adamw_attrs(0.9, -0.1));
  return cases;
}

OpCases cases::sgd_cases(DType f) {
  const DType s = ops::statistic_dtype(f);
  OpCases cases;
  auto good = [&](const Shape& shape, double momentum, double weight_decay, bool apply, const char* note) {
    std::vector<CaseOperand> operands{real(Type(f, shape)), real(Type(s, shape))};
    if (momentum != 0) operands.push_back(real(Type(s, shape)));
    for (CaseOperand& operand : std::vector{one(s, 0.25), one(s, 0.01), one(DType::boolean, apply ? 1 : 0)}) {
      operands.push_back(std::move(operand));
    }
    cases.good.push_back({.op = "sgd",
                          .operands = std::move(operands),
                          .attrs = sgd_attrs(momentum, weight_decay),
                          .note = note,
                          .reduction = 3});
  };
  good({6, 12, 18}, 0.9, 0.1, true, "cut");
  good({6, 12, 18}, 0, 0, true, "cut, plain");
  good({5, 7}, 0.9, 0, true, "momentum");
  good({5, 7}, 0, 0.1, true, "decay");
  good({5, 7}, 0.9, 0.1, false, "not applied");

  const Type p(f, {3, 5}), m(s, {3, 5}), scalar(s, {}), apply(DType::boolean, {});
  auto bad = [&](const char* label, std::vector<Type> operands, Attrs attrs) {
    cases.bad.push_back({label, "sgd", std::move(operands), std::move(attrs)});
  };
  bad("sgd_c1", {p, m, scalar, scalar, apply}, sgd_attrs(0.9, 0));
  bad("sgd_c1", {p, Type(s, {5, 3}), scalar, scalar, apply}, sgd_attrs(0, 0));
  bad("sgd_c2", {p, m, scalar, scalar, scalar}, sgd_attrs(0, 0));
  bad("sgd_c3", {p, m, m, scalar, scalar, apply}, sgd_attrs(1.5, 0));
  return cases;
}

}  // namespace systole
