#include "describe/ops/last_dim.h"
#include "describe/ops/testing/list.h"

namespace systole {
namespace {

const Attrs kEps{{"eps", 1e-5}}, kInputOnly{{"input_only", true}};

}  // namespace

OpCases cases::rms_norm_cases(DType f) {
  const DType s = ops::statistic_dtype(f);
  OpCases cases;
  auto good = [&](const Type& x, DType scale, const char* note) {
    const Type row = ops::without_last(x, s), vector(scale, {ops::last_size(x)});
    cases.good.push_back({.op = "rms_norm",
                          .operands = {real(x), real(vector, 0.5, 1.5)},
                          .attrs = kEps,
                          .note = note,
                          .reduction = 18,
                          .cotangents = {0}});
    const std::vector<CaseOperand> grad{real(x), real(vector, 0.5, 1.5), real(row, 0.5, 2), real(x)};
    cases.good.push_back({.op = "rms_norm_grad", .operands = grad, .note = note, .reduction = 72});
    cases.good.push_back({.op = "rms_norm_grad", .operands = grad, .attrs = kInputOnly, .note = note, .reduction = 18});
  };
  good(Type(f, {6, 12, 18}), s, "cut");
  good(Type(f, {3, 5, 7}), f, "ragged, scale of x's type");
  good(Type(f, {5}), s, "one row");

  const Type x(f, {3, 5}), scale(s, {5}), row(s, {3});
  cases.bad.push_back({.label = "rms_norm_c1", .op = "rms_norm", .operands = {x}, .attrs = kEps});
  cases.bad.push_back({.label = "rms_norm_c2", .op = "rms_norm", .operands = {x, Type(s, {3})}, .attrs = kEps});
  cases.bad.push_back({.label = "rms_norm_c3", .op = "rms_norm", .operands = {x, scale}, .attrs = {{"eps", 0.0}}});
  cases.bad.push_back({.label = "rms_norm_c4", .op = "rms_norm_grad", .operands = {x, scale, scale, x}});
  cases.bad.push_back({.label = "rms_norm_c4", .op = "rms_norm_grad", .operands = {x, scale, row, row}});
  return cases;
}

OpCases cases::layer_norm_cases(DType f) {
  const DType s = ops::statistic_dtype(f);
  OpCases cases;
  auto good = [&](const Type& x, DType scale, const char* note) {
    const Type row = ops::without_last(x, s), vector(scale, {ops::last_size(x)});
    cases.good.push_back({.op = "layer_norm",
                          .operands = {real(x, -1, 2), real(vector, 0.5, 1.5), real(vector)},
                          .attrs = kEps,
                          .note = note,
                          .reduction = 18,
                          .cotangents = {0}});
    const std::vector<CaseOperand> grad{real(x), real(vector, 0.5, 1.5), real(row), real(row, 0.5, 2), real(x)};
    cases.good.push_back({.op = "layer_norm_grad", .operands = grad, .note = note, .reduction = 72});
    cases.good.push_back(
        {.op = "layer_norm_grad", .operands = grad, .attrs = kInputOnly, .note = note, .reduction = 18});
  };
  good(Type(f, {6, 12, 18}), s, "cut");
  good(Type(f, {3, 5, 7}), f, "ragged, scale of x's type");
  good(Type(f, {5}), s, "one row");

  const Type x(f, {3, 5}), scale(s, {5}), row(s, {3});
  cases.bad.push_back({.label = "layer_norm_c1", .op = "layer_norm", .operands = {x, scale}, .attrs = kEps});
  cases.bad.push_back({.label = "layer_norm_c2", .op = "layer_norm", .operands = {x, scale, row}, .attrs = kEps});
  cases.bad.push_back(
      {.label = "layer_norm_c2", .op = "layer_norm", .operands = {x, scale, scale.with(DType::f16)}, .attrs = kEps});
  cases.bad.push_back(
      {.label = "layer_norm_c3", .op = "layer_norm", .operands = {x, scale, scale}, .attrs = {{"eps", -1.0}}});
  cases.bad.push_back({.label = "layer_norm_c4", .op = "layer_norm_grad", .operands = {x, scale, row, scale, x}});
  cases.bad.push_back({.label = "layer_norm_c4", .op = "layer_norm_grad", .operands = {x, scale, row, row, row}});
  return cases;
}

}  // namespace systole
