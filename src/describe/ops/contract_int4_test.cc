#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"
#include "ground/tensor/int4.h"

namespace systole {
namespace {

HostTensor product(const HostTensor& x, const HostTensor& w, const HostTensor& scale) {
  Graph graph("g");
  const Value operands[] = {graph.input("x", Type(x.dtype(), x.shape())), graph.input("w", Type(w.dtype(), w.shape())),
                            graph.input("scale", Type(scale.dtype(), scale.shape()))};
  graph.output("y", contract_int4(operands[0], operands[1], operands[2]));
  return evaluate(graph, std::array{x, w, scale})[0];
}

// Unit vectors read the matrix that the groups stand for: 127 of one is exact.
TEST(ContractInt4, UnitVectorsReadTheMatrix) {
  constexpr std::int64_t kRows = 32, kColumns = 64, kGroups = 2;
  std::vector<std::uint8_t> codes(kRows * kColumns / 2);
  std::vector<std::uint16_t> scales(kRows * kGroups * 2);
  std::vector<Int4Block> blocks;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t g = 0; g < kGroups; ++g) {
      std::array<float, kInt4Group> x;
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = std::sin(static_cast<float>(row * 64 + g * 32) + static_cast<float>(i));
      blocks.push_back(quantize_group(x));
      put_block(blocks.back(), kColumns, row, g, codes, scales);
    }
  }
  HostTensor x(DType::f32, {kColumns, kColumns}), w(DType::u8, {2, kGroups, 256}), scale(DType::f16, {2, kGroups, 32});
  for (std::int64_t i = 0; i < kColumns; ++i) x.set(i * kColumns + i, 127);
  std::copy_n(reinterpret_cast<const std::byte*>(codes.data()), codes.size(), w.bytes().begin());
  std::copy_n(reinterpret_cast<const std::byte*>(scales.data()), scales.size() * 2, scale.bytes().begin());
  const HostTensor y = product(x, w, scale);
  for (std::int64_t i = 0; i < kColumns; ++i) {
    for (std::int64_t row = 0; row < kRows; ++row) {
      const Int4Block& block = blocks[static_cast<std::size_t>(row * kGroups + i / 32)];
      const float want = value_of(block, static_cast<std::size_t>(i % 32));
      EXPECT_NEAR(y.at(i * kRows + row), 127 * want, 127 * 4e-7) << i << " " << row;
    }
  }
}

TEST(ContractInt4, AGroupThatIsNotFiniteGivesNaNAndLeavesOtherRows) {
  HostTensor x(DType::f32, {3, 32}), w(DType::u8, {1, 1, 256}), scale(DType::f16, {1, 1, 32});
  for (std::int64_t i = 0; i < 256; ++i) w.set(i, 0x21);
  for (std::int64_t i = 0; i < 16; ++i) scale.set(i, 0.5);
  x.set(3, INFINITY);
  x.set(32, 1);
  x.set(64 + 31, NAN);
  const HostTensor y = product(x, w, scale);
  for (std::int64_t j = 0; j < 16; ++j) {
    EXPECT_TRUE(std::isnan(y.at(j)));
    EXPECT_EQ(y.at(16 + j), double{1.0F / 127.0F * 0.5F * 127.0F});
    EXPECT_TRUE(std::isnan(y.at(32 + j)));
  }
}

}  // namespace
}  // namespace systole
