#include "predict/perf/product_dims.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"

namespace systole {
namespace {

ProductDims dims_of(const char* spec, const Shape& a, const Shape& b) {
  Graph graph;
  const Value left = graph.input("a", Type(DType::bf16, a)), right = graph.input("b", Type(DType::bf16, b));
  contract(left, right, spec);
  return product_dims(graph, graph.nodes().back());
}

TEST(ProductDims, letters_are_rows_columns_what_is_summed_and_batch) {
  const ProductDims projection = dims_of("bse,ehd->bshd", {8, 1024, 768}, {768, 12, 64});
  EXPECT_EQ(projection.batch, 1);
  EXPECT_EQ(projection.rows, 8 * 1024);
  EXPECT_EQ(projection.columns, 12 * 64);
  EXPECT_EQ(projection.summed, 768);
  const ProductDims of_weights = dims_of("bshd,bse->hde", {8, 1024, 12, 64}, {8, 1024, 768});
  EXPECT_EQ(of_weights.rows, 12 * 64);
  EXPECT_EQ(of_weights.columns, 768);
  EXPECT_EQ(of_weights.summed, 8 * 1024);
  const ProductDims batched = dims_of("bnsd,bntd->bnst", {2, 3, 5, 7}, {2, 3, 11, 7});
  EXPECT_EQ(batched.batch, 6);
  EXPECT_EQ(batched.rows, 5);
  EXPECT_EQ(batched.columns, 11);
  EXPECT_EQ(batched.summed, 7);
}

TEST(ProductDims, what_fills_no_tile_is_done_all_the_same) {
  EXPECT_EQ((ProductDims{.rows = 256, .columns = 128, .summed = 128}.filled_flops()), 2.0 * 256 * 128 * 128);
  EXPECT_EQ((ProductDims{.rows = 256, .columns = 128, .summed = 64}.filled_flops()), 2.0 * 256 * 128 * 128);
  EXPECT_EQ((ProductDims{.batch = 3, .rows = 9, .columns = 100, .summed = 1}.filled_flops()), 2.0 * 3 * 16 * 128 * 128);
  EXPECT_EQ((ProductDims{.rows = 128, .columns = 9, .summed = 128}.filled_flops()), 2.0 * 128 * 16 * 128)
      << "columns as rows";
}

TEST(ProductDims, what_outgrows_the_chip_passes_once_for_each_block) {
  const ProductDims dims{.batch = 2, .rows = 1024, .columns = 4096, .summed = 512};
  EXPECT_EQ(dims.streamed_bytes(2, Bytes(2 << 20)), 0) << "the rows of one product are there";
  EXPECT_EQ(dims.streamed_bytes(2, Bytes((2 << 20) - 1)), 2.0 * 2 * 1024 * 4096 * 512 * 2);
  EXPECT_EQ(dims.streamed_bytes(4, Bytes(1 << 20)), 2.0 * 2 * 1024 * 4096 * 512 * 4);
}

}  // namespace
}  // namespace systole
