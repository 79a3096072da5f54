#include "predict/perf/kernel_seconds.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Accelerator chip(const char* name) {
  static const Catalog known = Catalog::read(builtin_catalog_files()).value();
  return accelerator_of(*known.find(name).value()).value();
}

double rate(const Accelerator& c, const ProductDims& d, ProductType type = ProductType::bf16) {
  return 2.0 * static_cast<double>(d.batch * d.rows) * static_cast<double>(d.columns * d.summed) /
         product_seconds(c, d, type);
}

// On vector units, in six passes of a TPU's matrix unit, and as tf32 on a GPU's.
TEST(KernelSeconds, products_in_f32_are_done_at_the_rate_of_f32) {
  const ProductDims large{1, 16384, 8192, 8192};
  const Accelerator h100 = chip("h100"), v5e = chip("v5e");
  EXPECT_LE(rate(h100, large, ProductType::f32), 67e12);
  EXPECT_GE(rate(h100, large, ProductType::f32), 0.7 * 67e12);
  EXPECT_LE(rate(h100, large, ProductType::tf32), 494.5e12);
  EXPECT_GT(rate(h100, large, ProductType::tf32), 4 * rate(h100, large, ProductType::f32));
  EXPECT_NEAR(rate(v5e, large, ProductType::f32) * 6, rate(v5e, large), 1e9);
  EXPECT_FALSE(chip("b300").products.contains(ProductType::f32)) << "nobody states it";
  // A wide sum takes bytes of twice the size.
  const ProductDims narrow{1, 16384, 1, 8192};
  EXPECT_NEAR(rate(h100, narrow) / rate(h100, narrow, ProductType::tf32), 2, 1e-6);
}

// No product of any shape is faster than the best libraries' best.
TEST(KernelSeconds, no_product_beats_what_the_chip_reaches) {
  for (const char* name : {"a100", "h100", "b200", "v5e", "v5p", "v6e"}) {
    const Accelerator c = chip(name);
    const Accelerator::Products& best = c.products.at(ProductType::bf16);
    double most = 0;
    for (const std::int64_t m : {1, 8, 100, 4096, 16384})
      for (const std::int64_t n : {64, 1000, 8192})
        for (const std::int64_t k : {64, 4096, 65536}) most = std::max(most, rate(c, {1, m, n, k}));
    EXPECT_LE(most, best.peak.count() * best.reached) << name;
    EXPECT_GE(most, best.peak.count() * best.reached * 0.9) << name;
  }
}

TEST(KernelSeconds, a_block_more_than_a_wave_costs) {
  const Accelerator a100 = chip("a100");  // 108 multiprocessors
  const ProductDims full{1, 256 * 12, 128 * 9, 4096}, more{1, 256 * 13, 128 * 9, 4096};
  EXPECT_LT(rate(a100, more), 0.85 * rate(a100, full));
}

// Terms are padded to the unit's side, and so are the columns or the rows, whichever costs less.
TEST(KernelSeconds, a_matrix_unit_is_filled_up) {
  const auto ratio = [](const char* name, const ProductDims& to, const ProductDims& from) {
    return product_seconds(chip(name), to, ProductType::bf16) / product_seconds(chip(name), from, ProductType::bf16);
  };
  const ProductDims even{1, 8192, 8192, 8192};
  EXPECT_NEAR(ratio("v5e", {1, 8192, 8192, 8300}, even), 8320.0 / 8192, 1e-3);  // sides of 128
  EXPECT_NEAR(ratio("v6e", {1, 8192, 8192, 8300}, even), 8448.0 / 8192, 1e-3);  // and of 256
  EXPECT_NEAR(ratio("v5e", {1, 8192, 8100, 8192}, even), 8104.0 / 8192, 1e-3);
  EXPECT_NEAR(ratio("v5e", {1, 8100, 8100, 8192}, even), 8104.0 / 8192, 1e-3);
}

// One row: the time is that of reading the weights once.
TEST(KernelSeconds, narrow_products_take_as_long_as_their_bytes) {
  const Accelerator h100 = chip("h100");
  const double bytes = 2.0 * 8192 * 8192 + 2.0 * 8192 + 2.0 * 8192;
  EXPECT_NEAR(product_seconds(h100, {1, 1, 8192, 8192}, ProductType::bf16),
              bytes / (h100.memory.count() * h100.memory_reached), 1e-9);
}

// In f32 a tile of 64 rows would take longer than the bytes, but kernels for few rows do not pad to it.
TEST(KernelSeconds, products_of_decoding_are_not_padded_to_a_tile) {
  const Accelerator h100 = chip("h100");
  const ProductDims eight{1, 8, 8192, 8192}, many{1, 64, 8192, 8192};
  const double bytes = 4.0 * (8192.0 * 8192 + 2 * 8 * 8192);
  EXPECT_NEAR(narrow_product_seconds(h100, eight, ProductType::f32),
              bytes / (h100.memory.count() * h100.memory_reached), 1e-9);
  EXPECT_GT(product_seconds(h100, eight, ProductType::f32),
            1.2 * narrow_product_seconds(h100, eight, ProductType::f32));
  EXPECT_EQ(product_seconds(h100, many, ProductType::f32), narrow_product_seconds(h100, many, ProductType::f32));
  EXPECT_EQ(product_seconds(chip("v5e"), eight, ProductType::f32),
            narrow_product_seconds(chip("v5e"), eight, ProductType::f32));
}

TEST(KernelSeconds, smaller_types_are_faster_where_the_chip_has_them) {
  const ProductDims d{1, 8192, 8192, 8192};
  EXPECT_GT(rate(chip("h100"), d, ProductType::fp8), 1.5 * rate(chip("h100"), d));
  EXPECT_DOUBLE_EQ(rate(chip("a100"), d, ProductType::fp8), rate(chip("a100"), d));
}

TEST(KernelSeconds, attention_without_scores_in_memory_is_faster) {
  const Accelerator a100 = chip("a100");
  AttentionShape shape{.rows = 64, .queries = 2048, .keys_of_row = 2048, .head = 128, .keys = 1024.5, .causal = true};
  const UnfusedAttention unfused = unfused_attention_seconds(a100, shape, false);
  EXPECT_LT(fused_attention_seconds(a100, a100.attention, shape, false), unfused.products + unfused.moved);
  // Heads whose rows are not multiples of 16 bytes.
  shape.head = 108;
  EXPECT_GT(unfused_attention_seconds(a100, shape, false).products, 5 * unfused.products);
}

}  // namespace
}  // namespace systole
