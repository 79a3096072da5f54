#include "describe/ops/testing/list.h"

namespace systole::cases {

OpCases constant_cases(DType f) {
  OpCases cases;
  auto attrs = [](DType dtype, Ints shape, const char* names, const char* key, Attr value) {
    Attrs all{{"dtype", std::string(name_of(dtype))}, {"shape", std::move(shape)}, {key, std::move(value)}};
    if (*names != 0) all.set("names", std::string(names));
    return all;
  };
  const std::int64_t first = 0, second = 1, third = 2;
  cases.good.push_back({.op = "constant", .attrs = attrs(f, {6, 12}, "batch,seq", "value", 0.1)});
  cases.good.push_back({.op = "constant", .attrs = attrs(f, {}, "", "value", 2.5)});
  cases.good.push_back({.op = "constant", .attrs = attrs(DType::i32, {3, 5}, ",seq", "value", -7.0)});
  cases.good.push_back({.op = "constant", .attrs = attrs(DType::boolean, {3}, "", "value", 1.0)});
  cases.good.push_back({.op = "constant", .attrs = attrs(f, {0, 3}, "", "value", 1.0), .note = "empty"});
  cases.bad.push_back({.label = "constant_c1", .op = "constant", .attrs = attrs(f, {3, -1}, "", "value", 1.0)});
  cases.bad.push_back({.label = "constant_c1", .op = "constant", .attrs = attrs(f, {3, 4}, "batch", "value", 1.0)});
  cases.bad.push_back({.label = "constant_c2", .op = "constant", .attrs = attrs(DType::i32, {3}, "", "value", 0.5)});

  cases.good.push_back({.op = "iota", .attrs = attrs(f, {6, 12}, "", "dim", second)});
  cases.good.push_back({.op = "iota", .attrs = attrs(f, {6, 12}, "batch,", "dim", first)});
  cases.good.push_back({.op = "iota", .attrs = attrs(DType::i32, {3, 7, 5}, "", "dim", second)});
  cases.good.push_back({.op = "iota", .attrs = attrs(DType::i64, {6, 12, 18}, "", "dim", third)});
  cases.bad.push_back({.label = "iota_c1", .op = "iota", .attrs = attrs(f, {-3}, "", "dim", first)});
  cases.bad.push_back({.label = "iota_c2", .op = "iota", .attrs = attrs(f, {3}, "", "dim", second)});
  cases.bad.push_back({.label = "iota_c2", .op = "iota", .attrs = attrs(DType::boolean, {3}, "", "dim", first)});
  return cases;
}

}  // namespace systole::cases
