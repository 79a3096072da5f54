#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ground/tensor/buffer.h"
#include "ground/tensor/dtype.h"

namespace systole {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(DType, names_read_back) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  }
  EXPECT_FALSE(dtype_named("f31"));
}

TEST(DType, every_bit_pattern_of_a_small_float_survives) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
    const int count = size_of(dtype) == 2 ? 65536 : 256;
    for (int bits = 0; bits < count; ++bits) {
      std::byte in[8] = {static_cast<std::byte>(bits & 0xff), static_cast<std::byte>(bits >> 8)};
      const double value = load(dtype, in, 0);
      if (std::isnan(value)) continue;
      std::byte out[8] = {};
      store(dtype, out, 0, value);
      EXPECT_EQ(in[0], out[0]) << name_of(dtype) << " " << bits;
      EXPECT_EQ(in[1], out[1]) << name_of(dtype) << " " << bits;
    }
  }
}

TEST(DType, rounds_to_nearest_even) {
  EXPECT_EQ(rounded(DType::bf16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(rounded(DType::bf16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(rounded(DType::bf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);  // not rounded twice
  EXPECT_EQ(rounded(DType::f16, 65520), kInf);
  EXPECT_EQ(rounded(DType::f16, 65519), 65504);
  EXPECT_EQ(rounded(DType::f8e5m2, 57344), 57344);
  EXPECT_EQ(rounded(DType::f8e4m3, 448), 448);
  EXPECT_TRUE(std::isnan(rounded(DType::f8e4m3, 480)));
  EXPECT_EQ(rounded(DType::f16, 0x1p-24), 0x1p-24);
  EXPECT_EQ(rounded(DType::f16, 0x1p-26), 0);
}

TEST(DType, integers_saturate) {
  EXPECT_EQ(rounded(DType::i8, 300), 127);
  EXPECT_EQ(rounded(DType::u8, -3), 0);
  EXPECT_EQ(rounded(DType::i32, -2.9), -2);
  EXPECT_EQ(rounded(DType::i32, std::nan("")), 0);
  EXPECT_EQ(rounded(DType::boolean, 0.5), 1);
}

TEST(HostTensor, holds_values_row_major) {
  const double values[] = {1, 2, 3, 4, 5, 6};
  HostTensor t(DType::bf16, {2, 3}, values);
  EXPECT_EQ(t.at(4), 5);
  EXPECT_EQ(t.bytes().size(), 12U);
  EXPECT_EQ(strides_of({2, 3, 4}), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
}

TEST(Shape, too_large_is_refused) { EXPECT_THROW(num_elements({1LL << 40, 1LL << 40}), std::exception); }

}  // namespace
}  // namespace systole
