#include "describe/ops/testing/list.h"

namespace systole::cases {

OpCases dropout_cases(DType f) {
  OpCases cases;
  auto number = [](double value) { return given(Type(DType::i64, {}), {value}); };
  auto rate = [](double r) { return Attrs{{"rate", r}}; };
  auto good = [&](Shape shape, double r, std::int64_t row, const char* note = "") {
    cases.good.push_back({.op = "dropout",
                          .operands = {real(Type(f, std::move(shape))), number(1234), number(7), number(2),
                                       number(static_cast<double>(row))},
                          .attrs = rate(r),
                          .note = note});
  };
  good({6, 12}, 0.25, 0);
  good({3, 7, 5}, 0.5, 11, "rows in the middle of a block");
  good({12, 5, 18}, 0.1, 3);
  good({}, 0.5, 4, "scalar");
  good({0, 3}, 0.5, 4, "empty");
  good({6, 3}, 0.0, 4, "keeps all");
  // Rows of 24 tokens; the case holds a few of them.
  auto placed = [&](Shape shape, std::vector<double> places, std::int64_t row, const char* note) {
    Attrs attrs = rate(0.3);
    attrs.set("length", std::int64_t{24});
    const Type of_places(DType::i32, {shape[1]});
    cases.good.push_back({.op = "dropout",
                          .operands = {real(Type(f, std::move(shape))), number(1234), number(7), number(2),
                                       number(static_cast<double>(row)), given(of_places, std::move(places))},
                          .attrs = std::move(attrs),
                          .note = note});
  };
  placed({6, 12, 18}, {0, 1, 2, 9, 10, 11, 23, 22, 5, 5, 6, 7}, 3, "tokens with places");
  placed({4, 6}, {20, 21, 22, 3, 4, 5}, 0, "tokens of one element");
  placed({3, 7, 5, 2}, {1, 2, 3, 4, 5, 6, 7}, 2, "tokens of several dims");
  const Type i64(DType::i64, {});
  cases.bad.push_back({.label = "dropout_c1",
                       .op = "dropout",
                       .operands = {Type(DType::i32, {3}), i64, i64, i64, i64},
                       .attrs = rate(0.5)});
  cases.bad.push_back({.label = "dropout_c2",
                       .op = "dropout",
                       .operands = {Type(f, {3}), i64, i64, i64, Type(DType::i32, {})},
                       .attrs = rate(0.5)});
  cases.bad.push_back(
      {.label = "dropout_c3", .op = "dropout", .operands = {Type(f, {3}), i64, i64, i64, i64}, .attrs = rate(1.0)});
  const auto misplaced = [&](Shape shape, Type places, std::int64_t length) {
    Attrs attrs = rate(0.5);
    attrs.set("length", length);
    cases.bad.push_back({.label = "dropout_c4",
                         .op = "dropout",
                         .operands = {Type(f, std::move(shape)), i64, i64, i64, i64, std::move(places)},
                         .attrs = std::move(attrs)});
  };
  misplaced({3, 4, 5}, Type(DType::i32, {5}), 9);
  misplaced({3, 4, 5}, Type(DType::i64, {4}), 9);
  misplaced({3, 4, 5}, Type(DType::i32, {4}), 0);
  misplaced({3}, Type(DType::i32, {3}), 9);
  return cases;
}

}  // namespace systole::cases
