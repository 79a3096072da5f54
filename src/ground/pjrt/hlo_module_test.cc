#include "ground/pjrt/hlo_module.h"

#include <gtest/gtest.h>

#include <random>

#include "ground/pjrt/wire.h"

namespace systole::pjrt {
namespace {

WireWriter array_shape(int type, std::vector<std::int64_t> dims) {
  return WireWriter().integer(2, type).packed(3, dims);
}

// An all-reduce over two groups, which calls the sum; a tuple of it and a bf16 value.
std::string small_module() {
  WireWriter sum;
  sum.bytes(1, "sum")
      .message(2, WireWriter().bytes(1, "add").bytes(2, "add").integer(35, 3))
      .integer(5, 7)
      .integer(6, 3);
  WireWriter reduce;
  reduce.bytes(1, "all-reduce.1").bytes(2, "all-reduce").message(3, array_shape(11, {2, 3})).integer(35, 5);
  reduce.message(7, WireWriter().bytes(1, "t").bytes(2, "layer/sum")).packed(36, std::vector<std::int64_t>{4});
  reduce.packed(38, std::vector<std::int64_t>{7}).bytes(43, "{\"estimated_cycles\":\"12\"}").integer(26, 1);
  reduce.message(49, WireWriter().packed(1, std::vector<std::int64_t>{0, 1}));
  reduce.message(49, WireWriter().packed(1, std::vector<std::int64_t>{2, 3}));
  WireWriter tuple;
  tuple.bytes(2, "tuple").integer(35, 6);
  tuple.message(3, WireWriter().integer(2, 13).message(4, array_shape(11, {2, 3})).message(4, array_shape(16, {5})));
  WireWriter entry;
  entry.bytes(1, "main").message(2, reduce).message(2, tuple).integer(5, 8).integer(6, 6);
  WireWriter order;
  order.integer(1, 8).message(2, WireWriter().packed(1, std::vector<std::int64_t>{5, 6}));
  WireWriter module;
  module.bytes(1, "step").bytes(2, "main").message(3, sum).message(3, entry).integer(6, 8);
  module.message(7, WireWriter().message(1, order));
  return module.text();
}

TEST(HloModule, IsReadAsItWasWritten) {
  const std::string bytes = small_module();
  for (const OptimizedModule& given :
       {OptimizedModule{"hlo", bytes}, OptimizedModule{"hlo_with_config", WireWriter().bytes(1, bytes).text()}}) {
    const HloModule module = read_hlo(given).value();
    EXPECT_EQ(module.name, "step");
    ASSERT_EQ(module.computations.size(), 2U);
    const HloComputation& entry = module.computations.at(module.entry);
    EXPECT_EQ(entry.name, "main");
    EXPECT_EQ(entry.root, 6);
    ASSERT_EQ(entry.instructions.size(), 2U);
    const HloInstruction& reduce = entry.instructions[0];
    EXPECT_EQ(reduce.opcode, "all-reduce");
    EXPECT_EQ(reduce.source, "layer/sum");
    EXPECT_EQ(reduce.shape.bytes(), Bytes(24));
    EXPECT_EQ(reduce.operands, (std::vector<std::int64_t>{4}));
    EXPECT_EQ(reduce.called, (std::vector<std::int64_t>{7}));
    EXPECT_EQ(reduce.groups, (std::vector<std::vector<std::int64_t>>{{0, 1}, {2, 3}}));
    EXPECT_EQ(reduce.channel, 1);
    EXPECT_EQ(reduce.backend_config, "{\"estimated_cycles\":\"12\"}");
    EXPECT_EQ(entry.instructions[1].shape.parts.size(), 2U);
    EXPECT_EQ(entry.instructions[1].shape.bytes(), Bytes(24 + 10));
    EXPECT_EQ(module.schedule.at(8), (std::vector<std::int64_t>{5, 6}));
  }
}

// Numbers that determine trip counts of loops, sizes of dots, and the participants of a collective.
TEST(HloModule, NumbersOfInstructions) {
  const auto read = [](const WireWriter& instruction) {
    const WireWriter computation = WireWriter().message(2, instruction);
    return read_hlo({"hlo", WireWriter().message(3, computation).text()});
  };
  const auto only = [&](const WireWriter& instruction) {
    return read(instruction).value().computations.at(0).instructions.at(0);
  };
  const std::vector<std::int64_t> eight{8}, minus{-1}, two{2, 3};
  const auto literal = [](int field, const std::vector<std::int64_t>& values) {
    return WireWriter().message(8, WireWriter().message(1, WireWriter().integer(2, 4)).packed(field, values));
  };
  EXPECT_EQ(only(literal(4, eight)).constant, 8);
  EXPECT_EQ(only(literal(5, minus)).constant, -1);
  EXPECT_FALSE(only(literal(4, two)).constant) << "more than one";
  EXPECT_EQ(only(WireWriter().bytes(63, "LT")).comparison, "LT");
  EXPECT_EQ(only(WireWriter().message(30, WireWriter().packed(1, eight).packed(2, two))).contracted, eight);
  const WireWriter window = WireWriter().message(1, WireWriter().integer(1, 5).integer(2, 2).integer(3, 1));
  const HloInstruction convolution =
      only(WireWriter().message(15, window).message(16, WireWriter().integer(8, 2).packed(11, two)).integer(50, 4));
  ASSERT_EQ(convolution.window.size(), 1U);
  EXPECT_EQ(convolution.window[0].size, 5);
  EXPECT_EQ(convolution.window[0].dilation, 1) << "as nobody wrote it";
  EXPECT_EQ(convolution.convolution.input_feature, 2);
  EXPECT_EQ(convolution.convolution.input_spatial, two);
  EXPECT_EQ(convolution.convolution.feature_groups, 4);

  EXPECT_EQ(only(WireWriter().message(92, WireWriter().integer(1, 4).integer(2, 16))).group_size, 16);
  const HloInstruction listed = only(WireWriter().message(87, WireWriter().message(1, WireWriter().packed(1, two))));
  EXPECT_EQ(listed.groups, std::vector<std::vector<std::int64_t>>{two});
  const auto axis = [](std::int64_t size) { return WireWriter().bytes(1, "x").integer(2, size); };
  const WireWriter mesh = WireWriter().message(1, axis(2)).message(1, axis(4));
  const auto along = [&](const WireWriter& reference) {
    return WireWriter().message(93, WireWriter().message(1, mesh).message(2, reference));
  };
  EXPECT_EQ(only(along(WireWriter().integer(1, 1))).group_size, 4);
  EXPECT_EQ(only(along(WireWriter())).group_size, 2) << "axis 0 is not written";
  EXPECT_EQ(only(along(WireWriter().integer(1, 1).message(2, WireWriter().integer(2, 2)))).group_size, 2) << "a part";
  EXPECT_EQ(read(along(WireWriter().integer(1, 7))).error().kind, ErrorKind::corrupt);
}

TEST(HloModule, WhatDoesNotHoldIsSaid) {
  EXPECT_EQ(read_hlo({"mlir", ""}).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(read_hlo({"hlo", ""}).error().message, "the module '' has no entry");
  WireWriter caller;
  caller.message(2, WireWriter().bytes(1, "while.1").packed(38, std::vector<std::int64_t>{99}));
  EXPECT_EQ(read_hlo({"hlo", WireWriter().message(3, caller).text()}).error().message,
            "'while.1' calls computation 99, which is not there");
  const auto of_shape = [](const WireWriter& shape) {
    return read_hlo({"hlo", WireWriter().message(3, WireWriter().message(2, WireWriter().message(3, shape))).text()});
  };
  EXPECT_TRUE(of_shape(array_shape(11, {1 << 30, 1 << 29})).ok());
  EXPECT_EQ(of_shape(array_shape(11, {1 << 30, 1 << 30, 4})).error().message, "a shape of more than 2^60 elements");
  EXPECT_EQ(of_shape(array_shape(11, {2, -1})).error().kind, ErrorKind::corrupt);
  WireWriter shape;
  for (int depth = 0; depth < 1000; ++depth) shape = WireWriter().message(4, shape);
  EXPECT_EQ(of_shape(shape).error().kind, ErrorKind::corrupt);
}

TEST(HloModule, BytesThatWereChangedEndInAnErrorOrAModule) {
  const std::string whole = small_module();
  std::mt19937_64 random(6);
  int read = 0;
  for (int run = 0; run < 20'000; ++run) {
    std::string bytes = whole.substr(0, run % 4 == 0 ? random() % whole.size() : whole.size());
    for (int change = 0; change < 3 && !bytes.empty(); ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<HloModule> module = read_hlo({"hlo", bytes});
    read += module.ok() ? 1 : 0;
    if (module.ok()) {
      for (const auto& [id, computation] : module->computations)
        for (const HloInstruction& instruction : computation.instructions) (void)instruction.shape.bytes();
    }
    EXPECT_TRUE(module.ok() || module.error().kind == ErrorKind::corrupt);
  }
  EXPECT_GT(read, 100) << "some changes change only a name";
  EXPECT_LT(read, 19'000);
}

}  // namespace
}  // namespace systole::pjrt
