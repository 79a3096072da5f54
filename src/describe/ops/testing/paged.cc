#include "describe/ops/testing/list.h"

namespace systole::cases {
namespace {

Attrs scaled(std::int64_t window = 0) {
  Attrs attrs{{"scale", 0.4}};
  if (window != 0) attrs.set("window", window);
  return attrs;
}

void writes(OpCases& cases, DType f) {
  const Type pages(f, {9, 3, 4}), rows(f, {3, 5, 4}), table(DType::i32, {3, 4}), position(DType::i32, {3});
  const CaseOperand own = given(table, {7, 0, 3, 5, 8, 1, 2, 4, 6, -1, 9, 6});
  cases.good.push_back({.op = "page_write",
                        .operands = {real(pages), real(rows), own, given(position, {2, 0, 4})},
                        .note = "across pages, without a page"});
  cases.good.push_back({.op = "page_write",
                        .operands = {real(pages), real(Type(f, {3, 1, 4})), own, given(position, {11, -1, 12})},
                        .note = "at the end, outside"});
  cases.good.push_back(
      {.op = "page_write",
       .operands = {whole(Type(DType::i32, {6, 12, 6, 18}), 0, 99), whole(Type(DType::i32, {6, 12, 6, 18}), 0, 99),
                    given(Type(DType::i32, {6, 2}), {5, -1, 4, -1, 3, -1, 2, -1, 1, -1, 0, -1}),
                    given(Type(DType::i32, {6}), {0, 3, 6, 9, 12, -3})},
       .note = "integers"});
  const auto bad = [&](const char* label, std::vector<Type> operands) {
    cases.bad.push_back({.label = label, .op = "page_write", .operands = std::move(operands)});
  };
  bad("page_write_c1", {pages, rows, table});
  bad("page_write_c1", {pages, rows, Type(DType::i32, {4, 4}), position});
  bad("page_write_c1", {pages, rows, table, Type(DType::i32, {4})});
  bad("page_write_c2", {pages, Type(f, {3, 5, 5}), table, position});
  bad("page_write_c2", {Type(f, {9, 0, 4}), rows, table, position});
}

void attentions(OpCases& cases, DType f) {
  const auto call = [&](std::int64_t t, std::int64_t h, std::int64_t n, std::int64_t d, std::int64_t z,
                        std::vector<double> offset, std::int64_t window, const char* note) {
    const auto b = static_cast<std::int64_t>(offset.size());
    cases.good.push_back(
        {.op = "paged_attention",
         .operands = {real(Type(f, {b, t, h, d})), real(Type(f, {9, z, n, d})), real(Type(f, {9, z, n, d})),
                      whole(Type(DType::i32, {b, 4}), 0, 9), given(Type(DType::i32, {b}), std::move(offset))},
         .attrs = scaled(window),
         .note = note,
         .reduction = 4 * z});
  };
  call(1, 6, 3, 5, 7, {12, 0, -1}, 0, "one query each, one sees none");
  call(5, 6, 6, 3, 7, {8, 0, 23}, 0, "several, to the last position");
  call(5, 8, 4, 7, 3, {6, 2, -2}, 4, "in a window");
  call(6, 12, 6, 18, 18, {0, 3, 11, 50, 66, 40}, 0, "many");
  call(70, 4, 2, 5, 60, {64, 100, 150}, 0, "more than a block");
  call(1, 6, 3, 32, 70, {279, 127, 128, 60, 200}, 0, "several runs of keys, one query each");
  call(2, 6, 2, 16, 70, {200, 30, 255}, 140, "several runs of keys in a window");
  call(1, 4, 2, 5, 40, {1000, 161, 159}, 3, "a window past the last position");
  call(0, 4, 2, 5, 7, {12, 0, -1}, 0, "no queries");
  call(2, 0, 2, 5, 7, {12, 0, -1}, 0, "no heads");
  cases.good.push_back(
      {.op = "paged_attention",
       .operands = {real(Type(f, {3, 1, 4, 5})), real(Type(f, {6, 3, 4, 5})), real(Type(f, {6, 3, 4, 5})),
                    given(Type(DType::i32, {3, 2}), {9, 3, -1, 2, 5, 0}), given(Type(DType::i32, {3}), {5, 4, 3})},
       .attrs = scaled(),
       .note = "pages outside",
       .reduction = 6});
  const auto narrow = [&](std::int64_t t, std::int64_t d, std::int64_t z, std::vector<double> offset,
                          std::int64_t window) {
    const auto b = static_cast<std::int64_t>(offset.size());
    const CaseOperand pool = real(Type(DType::bf16, {9, z, 2, d}));
    cases.good.push_back({.op = "paged_attention",
                          .operands = {real(Type(f, {b, t, 6, d})), pool, pool, whole(Type(DType::i32, {b, 4}), -1, 9),
                                       given(Type(DType::i32, {b}), std::move(offset))},
                          .attrs = scaled(window),
                          .note = "keys and values in bf16",
                          .reduction = 4 * z});
  };
  narrow(1, 32, 70, {279, 127, 200}, 0);
  narrow(3, 5, 7, {12, 0, 23}, 0);
  narrow(2, 16, 70, {200, 30, 255}, 140);
  narrow(24, 18, 60, {64, 150}, 0);
  const Type q(f, {3, 5, 8, 6}), k(f, {9, 7, 4, 6}), table(DType::i32, {3, 4}), offset(DType::i32, {3});
  const auto bad = [&](const char* label, std::vector<Type> operands, const Attrs& attrs) {
    cases.bad.push_back({label, "paged_attention", std::move(operands), attrs});
  };
  bad("paged_attention_c1", {q, k, k, table}, scaled());
  bad("paged_attention_c1", {q, k, Type(f, {9, 7, 4, 5}), table, offset}, scaled());
  bad("paged_attention_c1", {q, Type(f, {0, 7, 4, 6}), Type(f, {0, 7, 4, 6}), table, offset}, scaled());
  const Type other = k.with(f == DType::f32 ? DType::f64 : DType::f32);
  bad("paged_attention_c1", {q, other, other, table, offset}, scaled());
  bad("paged_attention_c2", {q, Type(f, {9, 7, 3, 6}), Type(f, {9, 7, 3, 6}), table, offset}, scaled());
  bad("paged_attention_c3", {q, k, k, Type(DType::i32, {5, 4}), offset}, scaled());
  bad("paged_attention_c3", {q, k, k, table, Type(DType::i32, {5})}, scaled());
  bad("paged_attention_c4", {q, k, k, table, offset}, Attrs{{"scale", 0.0}});
  bad("paged_attention_c5", {q, k, k, table, offset}, scaled(-1));
}

}  // namespace

OpCases paged_cases(DType f) {
  OpCases cases;
  writes(cases, f);
  attentions(cases, f);
  return cases;
}

}  // namespace systole::cases
