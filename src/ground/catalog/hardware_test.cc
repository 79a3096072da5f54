#include "ground/catalog/hardware.h"

#include <gtest/gtest.h>

#include "ground/catalog/tables.h"

namespace systole {
namespace {

struct Known {
  Catalog catalog = Catalog::read(builtin_catalog_files()).value();
  CatalogTables tables = CatalogTables::read().value();
};
Known& known() {
  static Known all;
  return all;
}

Result<RequestedHardware> asked(std::string_view words) {
  return parse_hardware(known().catalog, known().tables.machines().value(), known().tables.slices().value(), words,
                        "resources.accelerators:");
}

std::string text_of(std::string_view words) {
  const Result<RequestedHardware> made = asked(words);
  if (!made.ok()) return made.error().message + " | " + made.error().hint;
  return fmt::format("{} chips {} machines {} of {}{}", made->chips, made->chip->name, made->machines,
                     made->types.empty() ? "-" : made->types.front()->name,
                     made->slice ? fmt::format(", {} x {}", made->slices, made->slice->by_shape()) : "");
}

TEST(RequestedHardware, is_what_its_words_say) {
  EXPECT_EQ(text_of("h100:64"), "64 chips h100 machines 8 of a3-highgpu-8g");
  EXPECT_EQ(text_of("h100:4"), "4 chips h100 machines 1 of a3-highgpu-4g");
  EXPECT_EQ(text_of("h100:8@a3-edgegpu-8g"), "8 chips h100 machines 1 of a3-edgegpu-8g");
  EXPECT_EQ(text_of("a3-highgpu-8g"), "8 chips h100 machines 1 of a3-highgpu-8g");
  EXPECT_EQ(text_of("a3-highgpu-8g:8"), "64 chips h100 machines 8 of a3-highgpu-8g");
  EXPECT_EQ(text_of("2048 x a3-highgpu-8g"), "16384 chips h100 machines 2048 of a3-highgpu-8g");
  EXPECT_EQ(text_of("v5p:4x4x4"), "64 chips v5p machines 16 of -, 1 x v5p:4x4x4");
  EXPECT_EQ(text_of("v4-32"), "16 chips v4 machines 4 of -, 1 x v4:2x2x4");
  EXPECT_EQ(text_of("v5e:16:2"), "32 chips v5e machines 8 of -, 2 x v5e:4x4");
  EXPECT_EQ(text_of("2 x v5p-128"), text_of("v5p:4x4x4:2"));
  EXPECT_EQ(asked("h100:64")->types.size(), 3u) << "each that holds eight";
}

TEST(RequestedHardware, takes_the_names_that_people_use) {
  EXPECT_EQ(text_of("v5e-8"), "8 chips v5e machines 1 of -, 1 x v5e:2x4");
  EXPECT_EQ(text_of("v5e-4"), "4 chips v5e machines 1 of -, 1 x v5e:2x2");
  EXPECT_EQ(text_of("v4-8"), "4 chips v4 machines 1 of -, 1 x v4:2x2x1");
  EXPECT_EQ(text_of("2 x v5e-16"), text_of("v5e:4x4:2"));
  EXPECT_EQ(text_of("Tesla T4:4"), text_of("t4:4"));
  EXPECT_EQ(text_of("NVIDIA A100-SXM4-80GB:8"), text_of("a100:8"));
  EXPECT_EQ(text_of("H100 80GB HBM3:8"), text_of("h100:8"));
  for (const char* others : {"8xh100", "h100x8", "h100-8", "h100=8"})
    EXPECT_TRUE(text_of(others).ends_with(" | h100:8")) << text_of(others);
  EXPECT_EQ(text_of("t4:1@n1-standard-4"), "1 chips t4 machines 1 of n1-*+1xt4");
  EXPECT_TRUE(text_of("n1-standard-4").ends_with("no accelerators of its own | attached to it: t4:1@n1-standard-4"))
      << text_of("n1-standard-4");
  EXPECT_TRUE(text_of("v5e-2").ends_with("'v5e-1' (1 chip), 'v5e-4' (4 chips), 'v5e-8' (8 chips)")) << text_of("v5e-2");
}

TEST(RequestedHardware, names_what_is_near) {
  EXPECT_EQ(text_of("h10:8"),
            "resources.accelerators: h10:8: no accelerator, machine or slice is called 'h10' | did you mean 'h100'?");
  EXPECT_EQ(text_of("h100"), "resources.accelerators: h100: how many of them? | h100:8");
  EXPECT_EQ(text_of("h100:0"),
            "resources.accelerators: h100:0: '0' is no number from 1 to 1,000,000 | h100:64, "
            "a3-highgpu-8g:8, v5p:4x4x4, v5p:4x4x4:2");
  EXPECT_EQ(text_of("b200:12"),
            "resources.accelerators: b200:12: b200 comes 8 to a machine at the least, which 12 is "
            "no multiple of | b200:8 or 16");
  EXPECT_EQ(text_of("v5e:17"),
            "resources.accelerators: v5e:17: v5e has no slice of 17 chips | the nearest have 16 and "
            "8 chips: v5e:16");
  EXPECT_EQ(text_of(""),
            "resources.accelerators: '' is no accelerator, machine or slice with a number | h100:64, "
            "a3-highgpu-8g:8, v5p:4x4x4, v5p-128");
}

}  // namespace
}  // namespace systole
