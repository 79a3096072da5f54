#include "describe/ops/testing/list.h"

namespace systole {

OpCases cases::rotary_cases(DType f) {
  auto attrs = [](double theta, bool inverse) { return Attrs{{"theta", theta}, {"inverse", inverse}}; };
  auto stretched = [](double factor, double low) {
    return Attrs{{"theta", 50.0},          {"inverse", false},        {"factor", factor},
                 {"low_freq_factor", low}, {"high_freq_factor", 4.0}, {"original_context", std::int64_t{40}}};
  };
  const Type ragged(f, {3, 5, 7, 4});
  OpCases cases;
  cases.good.push_back({.op = "rotary",
                        .operands = {real(Type(f, {6, 12, 18, 4})), whole(Type(DType::i32, {6, 12}), 0, 40)},
                        .attrs = attrs(10000, false),
                        .note = "cut",
                        .reduction = 2});
  cases.good.push_back({.op = "rotary",
                        .operands = {real(ragged), whole(Type(DType::i32, {3, 5}), -9, 40)},
                        .attrs = attrs(500, true),
                        .note = "inverse, positions below 0",
                        .reduction = 2});
  cases.good.push_back({.op = "rotary",
                        .operands = {real(Type(f, {3, 5, 7, 8})), whole(Type(DType::i32, {3, 5}), 0, 40)},
                        .attrs = stretched(8, 1),
                        .note = "stretched",
                        .reduction = 2});
  cases.good.push_back({.op = "rotary",
                        .operands = {real(Type(f, {3, 5, 7, 8})),
                                     given(Type(DType::i32, {3, 5}), {100'000, 131'071, 1'048'576, -100'000, 16'777'217,
                                                                      2'147'483'647, -2'147'483'647, 999'983})},
                        .attrs = attrs(500000, false),
                        .note = "positions far out",
                        .reduction = 2});

  const Type positions(DType::i32, {3, 5});
  cases.bad.push_back({.label = "rotary_c1",
                       .op = "rotary",
                       .operands = {Type(f, {3, 5, 4}), positions},
                       .attrs = attrs(10000, false)});
  cases.bad.push_back({.label = "rotary_c2",
                       .op = "rotary",
                       .operands = {Type(f, {3, 5, 7, 9}), positions},
                       .attrs = attrs(10000, false)});
  cases.bad.push_back({.label = "rotary_c3",
                       .op = "rotary",
                       .operands = {ragged, Type(DType::i32, {5, 3})},
                       .attrs = attrs(10000, false)});
  cases.bad.push_back(
      {.label = "rotary_c4", .op = "rotary", .operands = {ragged, positions}, .attrs = attrs(0, false)});
  Attrs part = attrs(10000, false);
  part.set("factor", 8.0);
  for (const Attrs& bad : {stretched(0.5, 1), stretched(8, 4), part})
    cases.bad.push_back({.label = "rotary_c5", .op = "rotary", .operands = {ragged, positions}, .attrs = bad});
  return cases;
}

}  // namespace systole
