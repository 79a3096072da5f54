#include "ground/catalog/compare.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

const Catalog& catalog() {
  static const Catalog all = Catalog::read(builtin_catalog_files()).value();
  return all;
}

Result<std::vector<ComparedChip>> compare(const std::vector<std::string>& names, const std::string& type = "bf16",
                                          const OfferFilter& filter = {}) {
  static CatalogTables tables = CatalogTables::read().value();
  return compare_chips(tables, catalog(), names, type, filter);
}

// v5p: 459 TFLOP/s at 4.20 per chip; H100: 989 at an eighth of 88.49.
TEST(Compare, one_type_for_all_and_what_a_dollar_buys) {
  const std::vector<ComparedChip> both =
      compare({"v5p", "NVIDIA_H100_80GB"}, "bf16", {.regions = {"us-central1"}}).value();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].chip->name, "h100");
  EXPECT_EQ(both[0].peak->rate, FlopRate(459e12));
  EXPECT_EQ(both[1].peak->rate, FlopRate(989e12));
  EXPECT_DOUBLE_EQ(both[0].per_chip->count(), 4.2);
  EXPECT_NEAR(both[1].per_chip->count(), 88.49 / 8, 1e-4);
  EXPECT_EQ(both[1].offer->machine, "a3-highgpu-8g");
  EXPECT_EQ(both[0].offer->name(), "v5p-8") << "the smallest of those that cost the same";
  EXPECT_NEAR(both[0].flops_per_dollar->count(), 459e12 * 3600 / 4.2, 1e12);
  EXPECT_NEAR(both[1].flops_per_dollar->count(), 989e12 * 3600 / (88.49 / 8), 1e14);
}

TEST(Compare, unknown_stays_unknown) {
  const std::vector<ComparedChip> chips = compare({"gb200", "a100", "tpu8t"}, "fp8").value();
  EXPECT_TRUE(chips[0].peak);
  EXPECT_FALSE(chips[0].per_chip) << "no list names a price";
  EXPECT_FALSE(chips[0].flops_per_dollar);
  EXPECT_FALSE(chips[1].peak) << "no fp8 units";
  EXPECT_TRUE(chips[1].per_chip);
  EXPECT_FALSE(chips[1].flops_per_dollar);
  EXPECT_EQ(chips[2].offers, 0U);
}

TEST(Compare, of_vector_units_where_a_chip_has_no_others) {
  EXPECT_FALSE(peak_of(*catalog().find("p100").value(), "f16")->matrix);
  EXPECT_TRUE(peak_of(*catalog().find("t4").value(), "f16")->matrix);
  EXPECT_FALSE(peak_of(*catalog().find("t4").value(), "f32")->matrix);
  EXPECT_FALSE(peak_of(*catalog().find("v6e").value(), "f32"));
}

TEST(Compare, what_is_unknown_is_said_with_the_nearest) {
  EXPECT_NE(compare({"v5p", "h1000"}).error().hint.find("'h100'"), std::string::npos);
  EXPECT_NE(compare({"v5p"}, "bf61").error().hint.find("'bf16'"), std::string::npos);
}

}  // namespace
}  // namespace systole
