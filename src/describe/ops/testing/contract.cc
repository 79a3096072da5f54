#include "describe/ops/testing/list.h"

namespace systole::cases {

OpCases contract_cases(DType f) {
  OpCases cases;
  auto spec = [](const char* text) { return Attrs{{"spec", std::string(text)}}; };
  auto good = [&](Shape a, Shape b, const char* text, std::int64_t reduction, const char* note = "") {
    cases.good.push_back({.op = "contract",
                          .operands = {real(Type(f, std::move(a))), real(Type(f, std::move(b)))},
                          .attrs = spec(text),
                          .note = note,
                          .reduction = reduction});
  };
  good({6, 12}, {12, 18}, "mk,kn->mn", 12);
  good({12, 6}, {18, 12}, "km,nk->mn", 12, "both turned");
  good({6, 3, 12}, {12, 18, 5}, "bse,ehd->bshd", 12, "a projection");
  good({6, 12, 3, 5}, {6, 18, 3, 5}, "bthd,bshd->bhts", 5, "scores");
  good({6, 4, 18}, {6, 4, 12}, "bsn,bsm->nm", 24, "a weight's gradient");
  good({3, 4, 5}, {4, 5}, "bsk,sk->b", 20, "to a vector");
  good({7}, {5}, "a,b->ab", 1, "outer product");
  good({6, 12}, {6, 12}, "ab,ab->ab", 1, "pointwise");
  good({6, 12}, {6, 12}, "ab,ab->", 72, "to a scalar");
  good({}, {}, ",->", 1, "scalars");
  good({3, 0}, {0, 4}, "mk,kn->mn", 1, "a sum of nothing");
  good({17, 33}, {33, 65}, "mk,kn->nm", 33, "past a block, result turned");
  Attrs wide = spec("mk,kn->mn");
  wide.set("dtype", std::string("f32"));
  cases.good.push_back({.op = "contract",
                        .operands = {real(Type(DType::bf16, {6, 12})), real(Type(DType::bf16, {12, 18}))},
                        .attrs = wide,
                        .note = "wider",
                        .reduction = 12,
                        .gradient = false});
  Attrs filled = spec("gecd,edm->gecm");
  filled.set("filled", Ints{2, 5});
  cases.good.push_back({.op = "contract",
                        .operands = {real(Type(f, {3, 6, 4, 12})), real(Type(f, {6, 12, 18}))},
                        .attrs = filled,
                        .note = "buffers of experts",
                        .reduction = 12});

  const Type a(f, {3, 4}), b(f, {4, 5});
  for (const Ints& wrong : {Ints{3}, Ints{0, 2}, Ints{3, 2}}) {
    Attrs attrs = spec("mk,kn->mn");
    attrs.set("filled", wrong);
    cases.bad.push_back({.label = "contract_c6", .op = "contract", .operands = {a, b}, .attrs = attrs});
  }
  cases.bad.push_back({.label = "contract_c1", .op = "contract", .operands = {a, b}, .attrs = spec("mk,kn")});
  cases.bad.push_back({.label = "contract_c1", .op = "contract", .operands = {a, b}, .attrs = spec("m1,1n->mn")});
  cases.bad.push_back(
      {.label = "contract_c1", .op = "contract", .operands = {Type(f, {4, 4}), b}, .attrs = spec("kk,kn->n")});
  cases.bad.push_back({.label = "contract_c2", .op = "contract", .operands = {a, b}, .attrs = spec("bmk,kn->bmn")});
  cases.bad.push_back(
      {.label = "contract_c3", .op = "contract", .operands = {a, Type(f, {3, 5})}, .attrs = spec("mk,kn->mn")});
  cases.bad.push_back({.label = "contract_c4", .op = "contract", .operands = {a, b}, .attrs = spec("mk,kn->n")});
  cases.bad.push_back({.label = "contract_c4", .op = "contract", .operands = {a, b}, .attrs = spec("mk,kn->mnz")});
  cases.bad.push_back({.label = "contract_c5",
                       .op = "contract",
                       .operands = {a, b.with(f == DType::bf16 ? DType::f32 : DType::bf16)},
                       .attrs = spec("mk,kn->mn")});
  cases.bad.push_back({.label = "contract_c5",
                       .op = "contract",
                       .operands = {a.with(DType::i32), b.with(DType::i32)},
                       .attrs = spec("mk,kn->mn")});
  return cases;
}

}  // namespace systole::cases
