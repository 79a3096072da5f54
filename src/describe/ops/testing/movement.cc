#include "describe/ops/testing/list.h"

namespace systole::cases {
namespace {

void transpose_and_slice(OpCases& cases, DType f) {
  auto perm = [](Ints p) { return Attrs{{"perm", std::move(p)}}; };
  cases.good.push_back({.op = "transpose", .operands = {real(Type(f, {6, 12}))}, .attrs = perm({1, 0})});
  cases.good.push_back(
      {.op = "transpose", .operands = {real(Type(f, {6, 12, 18}))}, .attrs = perm({2, 0, 1}), .note = "a cycle"});
  cases.good.push_back(
      {.op = "transpose", .operands = {real(Type(f, {3, 4, 5, 7}))}, .attrs = perm({0, 2, 1, 3}), .note = "heads"});
  cases.good.push_back({.op = "transpose",
                        .operands = {whole(Type(DType::i32, {3, 5}), -9, 9)},
                        .attrs = perm({1, 0}),
                        .note = "integers"});
  cases.good.push_back({.op = "transpose", .operands = {real(Type(f, {}))}, .attrs = perm({})});
  cases.bad.push_back(
      {.label = "transpose_c1", .op = "transpose", .operands = {Type(f, {3, 4})}, .attrs = perm({0, 0})});
  cases.bad.push_back(
      {.label = "transpose_c1", .op = "transpose", .operands = {Type(f, {3, 4})}, .attrs = perm({0, 1, 2})});

  auto range = [](Ints start, Ints limit) { return Attrs{{"start", std::move(start)}, {"limit", std::move(limit)}}; };
  cases.good.push_back(
      {.op = "slice", .operands = {real(Type(f, {6, 12, 18}))}, .attrs = range({0, 2, 0}, {6, 9, 18})});
  cases.good.push_back({.op = "slice", .operands = {real(Type(f, {3, 7, 5}))}, .attrs = range({1, 0, 2}, {3, 4, 3})});
  cases.good.push_back(
      {.op = "slice", .operands = {real(Type(f, {6, 5}))}, .attrs = range({0, 3}, {6, 3}), .note = "nothing"});
  cases.bad.push_back({.label = "slice_c1", .op = "slice", .operands = {Type(f, {6})}, .attrs = range({0}, {7})});
  cases.bad.push_back({.label = "slice_c1", .op = "slice", .operands = {Type(f, {6})}, .attrs = range({3}, {2})});
  cases.bad.push_back({.label = "slice_c1", .op = "slice", .operands = {Type(f, {6})}, .attrs = range({0, 0}, {3, 3})});
}

void concatenate_and_pad(OpCases& cases, DType f) {
  auto dim = [](std::int64_t d) { return Attrs{{"dim", d}}; };
  cases.good.push_back({.op = "concatenate",
                        .operands = {real(Type(f, {6, 12, 18})), real(Type(f, {6, 3, 18})), real(Type(f, {6, 5, 18}))},
                        .attrs = dim(1)});
  cases.good.push_back(
      {.op = "concatenate", .operands = {real(Type(f, {4, 3})), real(Type(f, {5, 3}))}, .attrs = dim(0)});
  cases.good.push_back({.op = "concatenate",
                        .operands = {real(Type(f, {4, 3})), real(Type(f, {4, 0}))},
                        .attrs = dim(1),
                        .note = "an empty part"});
  cases.good.push_back({.op = "concatenate", .operands = {real(Type(f, {4, 3}))}, .attrs = dim(1), .note = "one part"});
  cases.bad.push_back({.label = "concatenate_c1", .op = "concatenate", .operands = {Type(f, {3})}, .attrs = dim(1)});
  cases.bad.push_back({.label = "concatenate_c1", .op = "concatenate", .attrs = dim(0)});
  cases.bad.push_back({.label = "concatenate_c2",
                       .op = "concatenate",
                       .operands = {Type(f, {3, 4}), Type(f, {4, 5})},
                       .attrs = dim(0)});
  cases.bad.push_back({.label = "concatenate_c2",
                       .op = "concatenate",
                       .operands = {Type(f, {3, 4}), Type(DType::i32, {3, 4})},
                       .attrs = dim(0)});

  auto around = [](Ints low, Ints high, double value) {
    return Attrs{{"low", std::move(low)}, {"high", std::move(high)}, {"value", value}};
  };
  cases.good.push_back(
      {.op = "pad", .operands = {real(Type(f, {6, 5, 12}))}, .attrs = around({0, 2, 0}, {0, 1, 0}, 0.0)});
  cases.good.push_back({.op = "pad", .operands = {real(Type(f, {3, 4}))}, .attrs = around({1, 0}, {2, 3}, -1.5)});
  cases.good.push_back({.op = "pad",
                        .operands = {whole(Type(DType::i32, {3}), 0, 9)},
                        .attrs = around({0}, {2}, -1.0),
                        .note = "integers"});
  cases.good.push_back(
      {.op = "pad", .operands = {real(Type(f, {0}))}, .attrs = around({1}, {2}, 1.0), .note = "empty"});
  cases.bad.push_back({.label = "pad_c1", .op = "pad", .operands = {Type(f, {3})}, .attrs = around({-1}, {0}, 0.0)});
  cases.bad.push_back(
      {.label = "pad_c2", .op = "pad", .operands = {Type(DType::i32, {3})}, .attrs = around({1}, {0}, 0.5)});

  cases.good.push_back({.op = "copy", .operands = {real(Type(f, {6, 12}))}});
  cases.good.push_back({.op = "copy", .operands = {special(Type(f, {25}))}, .note = "special", .gradient = false});
  cases.bad.push_back({.label = "copy_c1", .op = "copy", .operands = {Type(f, {3}), Type(f, {3})}});
}

void parts(OpCases& cases, DType f) {
  auto part = [](std::int64_t dim, std::int64_t count) { return Attrs{{"dim", dim}, {"parts", count}}; };
  const Type index(DType::i64, {});
  cases.good.push_back(
      {.op = "take_part", .operands = {real(Type(f, {6, 4, 12})), given(index, {2})}, .attrs = part(1, 4)});
  cases.good.push_back({.op = "take_part",
                        .operands = {real(Type(f, {12, 5})), given(index, {1})},
                        .attrs = part(0, 3),
                        .note = "rows"});
  cases.good.push_back({.op = "take_part",
                        .operands = {real(Type(f, {3, 10})), given(index, {5})},
                        .attrs = part(1, 5),
                        .note = "no such part"});
  cases.bad.push_back({.label = "take_part_c1", .op = "take_part", .operands = {Type(f, {3})}, .attrs = part(0, 3)});
  cases.bad.push_back(
      {.label = "take_part_c2", .op = "take_part", .operands = {Type(f, {3}), index}, .attrs = part(0, 2)});
  cases.bad.push_back(
      {.label = "take_part_c2", .op = "take_part", .operands = {Type(f, {3}), index}, .attrs = part(1, 3)});
}

void cache(OpCases& cases, DType f) {
  const Type three(DType::i32, {3}), six(DType::i32, {6});
  cases.good.push_back({.op = "take_row", .operands = {real(Type(f, {6, 5, 12})), whole(six, -1, 7)}});
  cases.good.push_back(
      {.op = "take_row", .operands = {real(Type(f, {3, 5})), given(three, {4, 0, 2})}, .note = "numbers"});
  cases.good.push_back({.op = "take_row",
                        .operands = {whole(Type(DType::i32, {3, 5}), 0, 9), given(three, {4, 5, -1})},
                        .note = "integers, outside"});
  cases.bad.push_back({.label = "take_row_c1", .op = "take_row", .operands = {Type(f, {3, 5}), Type(DType::i32, {5})}});
  cases.bad.push_back({.label = "take_row_c1", .op = "take_row", .operands = {Type(f, {3}), three}});

  cases.good.push_back(
      {.op = "cache_write", .operands = {real(Type(f, {6, 7, 12})), real(Type(f, {6, 3, 12})), whole(six, 0, 5)}});
  cases.good.push_back({.op = "cache_write",
                        .operands = {real(Type(f, {3, 5, 4})), real(Type(f, {3, 2, 4})), given(three, {4, -1, 9})},
                        .note = "outside"});
  cases.bad.push_back(
      {.label = "cache_write_c1", .op = "cache_write", .operands = {Type(f, {3, 5}), Type(f, {3, 2}), six}});
  cases.bad.push_back(
      {.label = "cache_write_c2", .op = "cache_write", .operands = {Type(f, {3, 5, 4}), Type(f, {3, 2, 5}), three}});
}

}  // namespace

OpCases movement_cases(DType f) {
  OpCases cases;
  transpose_and_slice(cases, f);
  concatenate_and_pad(cases, f);
  parts(cases, f);
  cache(cases, f);
  return cases;
}

}  // namespace systole::cases
