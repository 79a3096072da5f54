#include "ground/catalog/tpu_slice.h"

#include <gtest/gtest.h>

#include "ground/catalog/tables.h"

namespace systole {
namespace {

std::span<const TpuSlice> slices() {
  static CatalogTables tables = CatalogTables::read().value();
  return tables.slices().value();
}
const Catalog& catalog() {
  static const Catalog builtin = Catalog::read(builtin_catalog_files()).value();
  return builtin;
}
TpuSlice slice(const char* text) { return find_tpu_slice(catalog(), slices(), text).value(); }

void expect_refused(const char* text, ErrorKind kind, const char* says, const char* hint) {
  const auto refused = find_tpu_slice(catalog(), slices(), text);
  ASSERT_FALSE(refused.ok()) << text;
  EXPECT_EQ(refused.error().kind, kind);
  EXPECT_NE(refused.error().message.find(says), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().hint.find(hint), std::string::npos) << refused.error().hint;
}

// v2, v3, v4, v5p and tpu7x count TensorCores, two per chip; v5litepod and v6e count chips.
TEST(TpuSlice, names_count_cores_or_chips) {
  const std::pair<const char*, const char*> kBoth[] = {
      {"v2-8", "v2:2x2"},       {"v3-2048", "v3:32x32"},  {"v4-128", "v4:4x4x4"},       {"v5p-128", "v5p:4x4x4"},
      {"v5p-256", "v5p:4x4x8"}, {"v5p-512", "v5p:4x8x8"}, {"v4-256", "v4:4x4x8"},       {"v5litepod-16", "v5e:4x4"},
      {"v6e-8", "v6e:2x4"},     {"v6e-256", "v6e:16x16"}, {"tpu7x-128", "tpu7x:4x4x4"}, {"v5p-8", "v5p:2x2x1"},
  };
  for (const auto& [name, shape] : kBoth) {
    EXPECT_EQ(slice(name).by_shape(), shape);
    EXPECT_EQ(slice(shape).name, name);
  }
  EXPECT_EQ(slice("v5p-128").chips, 64);
  EXPECT_EQ(slice("v5p-128").cores, 128);
  EXPECT_EQ(slice("v5p-128").devices, 64) << "two cores are one device";
  EXPECT_EQ(slice("v5p-128").hosts, 16);
  EXPECT_EQ(slice("tpu7x-128").devices, 128) << "two devices a chip";
  EXPECT_EQ(slice("v6e-16").chips, 16);
  EXPECT_EQ(slice("v6e-16").hosts, 4);
  EXPECT_EQ(slice("v6e-8").hosts, 1) << "one machine of 8 chips";
}

// Any catalog name of a family works; the family determines the counted unit.
TEST(TpuSlice, people_name_slices_by_their_family) {
  const std::pair<const char*, const char*> kPeoples[] = {
      {"v5e-1", "v5e:1x1"},       {"v5e-4", "v5e:2x2"},          {"v5e-8", "v5e:2x4"},         {"v5e-256", "v5e:16x16"},
      {"V5E-16", "v5e:4x4"},      {"trillium-8", "v6e:2x4"},     {"tpu-v6e-4", "v6e:2x2"},     {"v4-8", "v4:2x2x1"},
      {"TPU v4-8", "v4:2x2x1"},   {"tpu-v5p-8", "v5p:2x2x1"},    {"v2-8", "v2:2x2"},           {"v3-8", "v3:2x2"},
      {"v7x-128", "tpu7x:4x4x4"}, {"ironwood-8", "tpu7x:2x2x1"}, {"v5litepod:4x4", "v5e:4x4"},
  };
  for (const auto& [name, shape] : kPeoples) EXPECT_EQ(slice(name).by_shape(), shape) << name;
  EXPECT_EQ(slice("v5e-4").chips, 4);
  EXPECT_EQ(slice("v5e-4").hosts, 1);
  EXPECT_EQ(slice("v5p-8").chips, 4);
  EXPECT_EQ(slice("v4-8").chips, 4);
}

TEST(TpuSlice, axes_that_close) {
  EXPECT_EQ(slice("v5p:4x4x4").closes, (std::vector<bool>{true, true, true}));
  EXPECT_EQ(slice("v5p:2x4x4").closes, (std::vector<bool>{false, false, false}));
  EXPECT_EQ(slice("v6e:8x16").closes, (std::vector<bool>{false, true}));
  EXPECT_EQ(slice("v2:16x16").closes, (std::vector<bool>{true, true}));
  EXPECT_EQ(slice("v2:8x16").closes, (std::vector<bool>{false, false}));
  EXPECT_TRUE(slice("v4:4x4x8").twists);
  EXPECT_FALSE(slice("v4:4x4x4").twists);
}

// Any shape of whole cubes exists; it shares the name of the default shape.
TEST(TpuSlice, other_shapes_of_whole_cubes) {
  const TpuSlice thin = slice("v5p:4x4x16");
  EXPECT_EQ(thin.name, "v5p-512");
  EXPECT_EQ(thin.chips, 256);
  EXPECT_EQ(thin.hosts, 64);
  EXPECT_FALSE(thin.usual);
  EXPECT_TRUE(slice("v5p:4x8x8").usual);
  EXPECT_FALSE(find_tpu_slice(catalog(), slices(), "v6e:4x16").ok()) << "no cubes";
  EXPECT_FALSE(find_tpu_slice(catalog(), slices(), "v5p:64x64x64").ok()) << "more than are built";
}

TEST(TpuSlice, what_is_none_is_said_with_the_nearest) {
  expect_refused("v5p:4x4x5", ErrorKind::invalid, "there is no slice v5p:4x4x5", "v5p:4x4x4");
  expect_refused("v5p:4x4x2", ErrorKind::invalid, "there is no slice", "the nearest are v5p:2x4x4");
  expect_refused("v6e:8x4", ErrorKind::invalid, "there is no slice", "the nearest are v6e:4x8");
  expect_refused("v6e:3x3", ErrorKind::invalid, "there is no slice", "v6e:2x4");
  expect_refused("v6e:2x", ErrorKind::invalid, "'2x' is no shape", "v6e:1x1");
  expect_refused("v5p-120", ErrorKind::not_found, "no slice is called 'v5p-120'", "'v5p-128'");
  expect_refused("v5e-2", ErrorKind::not_found, "no slice is called 'v5e-2': names of v5e count chips",
                 "'v5e-1' (1 chip), 'v5e-4' (4 chips)");
  expect_refused("v4-4", ErrorKind::not_found, "names of v4 count TensorCores, two a chip", "'v4-8' (4 chips)");
  expect_refused("v5p-99999999999999999999", ErrorKind::not_found, "no slice is called", "the nearest are");
  expect_refused("h100-8", ErrorKind::not_found, "no slice is called 'h100-8'", "");
  expect_refused("v9:2x2", ErrorKind::not_found, "no slices are known of 'v9'", "'v2'");
}

TEST(TpuSlice, rows_that_contradict_themselves_are_refused) {
  const std::string header =
      "accelerator,name,counts,shape,chips,cores,devices,hosts,chips_per_host,closes,source,date\n";
  const auto read = [&](const std::string& row) {
    return CatalogTables::read(std::vector<CatalogFile>{{"slices.csv", header + row}});
  };
  EXPECT_TRUE(read("v5p,v5p-128,cores,4x4x4,64,128,64,16,4,yes;yes;yes,s,2026-01-01\n").ok());
  const std::pair<const char*, const char*> kWrong[] = {
      {"v5p,v5p-64,cores,4x4x4,64,128,64,16,4,yes;yes;yes,s,2026-01-01\n",
       "slices.csv:2:5: error: 'v5p-64' does not end in its 128 cores"},
      {"v5p,v5p-128,cores,4x4x8,64,128,64,16,4,yes;yes;yes,s,2026-01-01\n", "4x4x8 has 128 chips, and not 64"},
      {"v5p,v5p-128,cores,4x4x4,64,128,64,8,4,yes;yes;yes,s,2026-01-01\n", "8 hosts of 4 chips are not 64 chips"},
      {"v5p,v5p-128,cores,4x4x4,64,128,64,16,4,yes;yes,s,2026-01-01\n", "3 axes, and 2 answers"},
      {"v5p,v5p-128,cores,4xx4,64,128,64,16,4,yes;yes;yes,s,2026-01-01\n", "'4xx4' is no shape"},
  };
  for (const auto& [row, says] : kWrong) {
    const auto refused = read(row);
    ASSERT_FALSE(refused.ok()) << row;
    EXPECT_NE(to_string(refused.error()).find(says), std::string::npos) << to_string(refused.error());
  }
}

}  // namespace
}  // namespace systole
