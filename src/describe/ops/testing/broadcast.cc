#include "describe/ops/testing/list.h"

namespace systole::cases {

OpCases broadcast_cases(DType f) {
  OpCases cases;
  auto to = [](Ints shape, Ints dims) { return Attrs{{"shape", std::move(shape)}, {"dims", std::move(dims)}}; };
  cases.good.push_back(
      {.op = "broadcast", .operands = {real(Type(f, {}))}, .attrs = to({6, 12}, {}), .note = "scalar"});
  cases.good.push_back(
      {.op = "broadcast", .operands = {real(Type(f, {12}))}, .attrs = to({6, 12}, {1}), .note = "last"});
  cases.good.push_back(
      {.op = "broadcast", .operands = {real(Type(f, {6}))}, .attrs = to({6, 12}, {0}), .note = "first"});
  cases.good.push_back({.op = "broadcast",
                        .operands = {real(Type(f, {6, 18}))},
                        .attrs = to({6, 12, 18, 3}, {0, 2}),
                        .note = "into the middle"});
  cases.good.push_back(
      {.op = "broadcast", .operands = {real(Type(f, {3, 5}))}, .attrs = to({3, 5}, {0, 1}), .note = "nothing new"});
  cases.good.push_back({.op = "broadcast",
                        .operands = {whole(Type(DType::i32, {3}), -9, 9)},
                        .attrs = to({4, 3, 5}, {1}),
                        .note = "integers"});
  cases.good.push_back(
      {.op = "broadcast", .operands = {real(Type(f, {3}))}, .attrs = to({3, 0}, {0}), .note = "empty"});
  cases.bad.push_back({.label = "broadcast_c1", .op = "broadcast", .operands = {Type(f, {})}, .attrs = to({-2}, {})});
  cases.bad.push_back(
      {.label = "broadcast_c2", .op = "broadcast", .operands = {Type(f, {3})}, .attrs = to({3, 4}, {1})});
  cases.bad.push_back({.label = "broadcast_c2", .op = "broadcast", .operands = {Type(f, {1})}, .attrs = to({4}, {0})});
  cases.bad.push_back(
      {.label = "broadcast_c2", .op = "broadcast", .operands = {Type(f, {3, 3})}, .attrs = to({3, 3}, {1, 0})});

  auto shape = [](Ints sizes) { return Attrs{{"shape", std::move(sizes)}}; };
  cases.good.push_back(
      {.op = "reshape", .operands = {real(Type(f, {6, 12, 18}))}, .attrs = shape({72, 18}), .note = "merge"});
  cases.good.push_back(
      {.op = "reshape", .operands = {real(Type(f, {72, 18}))}, .attrs = shape({6, 12, 18}), .note = "split"});
  cases.good.push_back(
      {.op = "reshape", .operands = {real(Type(f, {6, 1, 12}))}, .attrs = shape({1, 6, 2, 6, 1}), .note = "ones"});
  cases.good.push_back(
      {.op = "reshape", .operands = {real(Type(f, {4, 6, 3}))}, .attrs = shape({6, 12}), .note = "across"});
  cases.good.push_back({.op = "reshape", .operands = {real(Type(f, {}))}, .attrs = shape({1, 1})});
  cases.good.push_back({.op = "reshape", .operands = {real(Type(f, {3, 0}))}, .attrs = shape({0}), .note = "empty"});
  cases.bad.push_back({.label = "reshape_c1", .op = "reshape", .operands = {Type(f, {6})}, .attrs = shape({-2, -3})});
  cases.bad.push_back({.label = "reshape_c2", .op = "reshape", .operands = {Type(f, {6})}, .attrs = shape({2, 4})});
  return cases;
}

}  // namespace systole::cases
