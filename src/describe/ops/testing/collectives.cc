// Collectives over several devices are tested on the fake mesh (collectives_test.cc); here one device runs one part.

#include "describe/ops/testing/list.h"

namespace systole::cases {

OpCases collective_cases(DType f) {
  OpCases cases;
  auto attrs = [](std::int64_t parts, std::initializer_list<std::pair<std::string, Attr>> more) {
    Attrs all(more);
    all.set("axis", std::string("data"));
    all.set("parts", parts);
    return all;
  };
  const std::int64_t first = 0, second = 1;
  const std::string sum = "sum";
  const CaseOperand x = real(Type(f, {6, 12}));
  cases.good.push_back({.op = "all_reduce", .operands = {x}, .attrs = attrs(1, {{"kind", sum}})});
  cases.good.push_back({.op = "all_gather", .operands = {x}, .attrs = attrs(1, {{"dim", first}})});
  cases.good.push_back({.op = "reduce_scatter", .operands = {x}, .attrs = attrs(1, {{"dim", second}, {"kind", sum}})});
  cases.good.push_back(
      {.op = "all_to_all", .operands = {x}, .attrs = attrs(1, {{"split_dim", first}, {"concat_dim", second}})});
  cases.good.push_back({.op = "collective_permute", .operands = {x}, .attrs = attrs(1, {{"by", std::int64_t{-1}}})});
  cases.bad.push_back(
      {.label = "collective_c1", .op = "all_reduce", .operands = {x.type}, .attrs = attrs(0, {{"kind", sum}})});
  cases.bad.push_back({.label = "collective_c1",
                       .op = "collective_permute",
                       .operands = {x.type, x.type},
                       .attrs = attrs(2, {{"by", second}})});
  cases.bad.push_back({.label = "collective_c2",
                       .op = "all_reduce",
                       .operands = {x.type},
                       .attrs = attrs(2, {{"kind", std::string("mean")}})});
  cases.bad.push_back({.label = "collective_c2",
                       .op = "all_reduce",
                       .operands = {Type(DType::boolean, {3})},
                       .attrs = attrs(2, {{"kind", sum}})});
  cases.bad.push_back({.label = "collective_c3",
                       .op = "reduce_scatter",
                       .operands = {x.type},
                       .attrs = attrs(5, {{"dim", second}, {"kind", sum}})});
  cases.bad.push_back({.label = "collective_c3",
                       .op = "all_gather",
                       .operands = {x.type},
                       .attrs = attrs(2, {{"dim", std::int64_t{2}}})});
  // Transfers between stages: laws/pipeline_test.cc runs the Programs of both stages.
  const auto transfer = [](std::int64_t parts, std::int64_t by, std::int64_t size) {
    return Attrs{{"axis", std::string("pipe")}, {"parts", parts},      {"by", by},
                 {"dtype", std::string("f32")}, {"shape", Ints{size}}, {"number", std::int64_t{0}}};
  };
  cases.bad.push_back({.label = "transfer_c1", .op = "receive", .operands = {}, .attrs = transfer(2, 4, 3)});
  cases.bad.push_back({.label = "transfer_c2", .op = "receive", .operands = {}, .attrs = transfer(2, 1, -3)});
  return cases;
}

}  // namespace systole::cases
