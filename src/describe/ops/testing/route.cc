// top_k and route: the ops that choose experts for tokens.
#include <limits>

#include "describe/ops/testing/list.h"

namespace systole {

OpCases cases::top_k_cases(DType f) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  OpCases cases;
  auto good = [&](CaseOperand x, std::int64_t k, const char* note, bool gradient = true) {
    cases.good.push_back(
        {.op = "top_k", .operands = {std::move(x)}, .attrs = {{"k", k}}, .note = note, .gradient = gradient});
  };
  good(real(Type(f, {6, 12, 18}), -3, 3), 4, "cut");
  good(real(Type(f, {5, 7}), -3, 3), 3, "ragged");
  good(real(Type(f, {5}), -3, 3), 5, "all of one row");
  good(whole(Type(f, {7, 9}), 0, 3), 6, "ties", false);
  good(given(Type(f, {3, 5}), {-inf, 1, inf, -inf, 0, 0, -0.0, 0, -0.0, 0, -inf, -inf, -inf, -inf, -inf}), 4,
       "infinities and zeros of both signs", false);
  cases.bad.push_back({.label = "top_k_c1", .op = "top_k", .operands = {Type(f, {})}, .attrs = {{"k", 1L}}});
  cases.bad.push_back({.label = "top_k_c1", .op = "top_k", .operands = {Type(DType::i32, {3})}, .attrs = {{"k", 1L}}});
  cases.bad.push_back({.label = "top_k_c2", .op = "top_k", .operands = {Type(f, {3, 5})}, .attrs = {{"k", 6L}}});
  cases.bad.push_back({.label = "top_k_c2", .op = "top_k", .operands = {Type(f, {3, 5})}, .attrs = {{"k", 0L}}});
  return cases;
}

OpCases cases::route_cases(DType f) {
  OpCases cases;
  const auto attrs = [](std::int64_t experts, std::int64_t capacity) {
    return Attrs{{"experts", experts}, {"capacity", capacity}};
  };
  auto good = [&](Shape shape, std::int64_t experts, std::int64_t capacity, const char* note, std::int64_t low = 0) {
    cases.good.push_back({.op = "route",
                          .operands = {whole(Type(DType::i32, std::move(shape)), low, experts - low)},
                          .attrs = attrs(experts, capacity),
                          .note = note});
  };
  good({6, 12, 2}, 4, 5, "cut, some dropped");
  good({3, 7, 4}, 5, 28, "room for all");
  good({3, 5, 1}, 8, 2, "one choice, some of nobody", -2);
  const Type chosen(DType::i32, {3, 5, 2});
  cases.bad.push_back({.label = "route_c1", .op = "route", .operands = {chosen.with(f)}, .attrs = attrs(4, 3)});
  cases.bad.push_back(
      {.label = "route_c1", .op = "route", .operands = {Type(DType::i32, {5, 2})}, .attrs = attrs(4, 3)});
  cases.bad.push_back({.label = "route_c2", .op = "route", .operands = {chosen}, .attrs = attrs(0, 3)});
  cases.bad.push_back({.label = "route_c2", .op = "route", .operands = {chosen}, .attrs = attrs(4, 0)});
  cases.bad.push_back(
      {.label = "route_c2", .op = "route", .operands = {Type(DType::i32, {1, 1 << 20, 8})}, .attrs = attrs(256, 3)});
  return cases;
}

}  // namespace systole
