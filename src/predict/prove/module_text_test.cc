#include "predict/prove/module_text.h"

#include <gtest/gtest.h>

namespace systole::prove {
namespace {

ModuleText seen(std::string_view text) { return look_at(text, "step.mlir").value(); }

TEST(ModuleText, what_jax_writes) {
  const ModuleText jax =
      seen(R"(module @jit_step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
})");
  EXPECT_EQ(jax.partitions, 4);
  EXPECT_EQ(jax.replicas, 2);
  EXPECT_TRUE(jax.shardy);
  EXPECT_FALSE(jax.bytecode);
  const ModuleText older = seen("module attributes {mhlo.num_partitions=8:i32} { mhlo.sharding = \"{replicated}\" }");
  EXPECT_EQ(older.partitions, 8);
  EXPECT_FALSE(older.replicas);
  EXPECT_FALSE(older.shardy);
}

TEST(ModuleText, a_mesh_says_how_many_where_no_attribute_does) {
  EXPECT_EQ(seen("module { sdy.mesh @m = <[\"data\"=4, \"model\"=2], device_ids=[0, 1]> }").partitions, 8);
  EXPECT_EQ(seen("sdy.mesh @a = <[\"x\"=2]>\nsdy.mesh @b = <[\"x\"=2, \"y\" = 3]>").partitions, 6);
  EXPECT_EQ(seen("sdy.mesh @empty = <[]>").partitions, 1);
  EXPECT_FALSE(seen("module { }").partitions);
}

TEST(ModuleText, strings_and_comments_are_passed_over) {
  const ModuleText quiet =
      seen("// mhlo.num_partitions = 4\nmodule { %0 = loc(\"mhlo.num_partitions = 8 \\\" sdy.mesh\") }");
  EXPECT_FALSE(quiet.partitions);
  EXPECT_FALSE(quiet.shardy);
  EXPECT_EQ(seen("\"a \\\\\" mhlo.num_partitions = 3").partitions, 3);
}

TEST(ModuleText, what_makes_no_sense_has_its_place) {
  const auto refused = [](std::string_view text) { return look_at(text, "step.mlir").error(); };
  EXPECT_EQ(to_string(refused(" \n\t")), "step.mlir: error: there is no module in it");
  EXPECT_NE(refused(std::string_view("\x7f"
                                     "ELF\0\1",
                                     6))
                .message.find("neither StableHLO's text nor its bytecode"),
            std::string::npos);
  const Error zero = refused("module {\n mhlo.num_partitions = 0 : i32 }");
  EXPECT_EQ(zero.kind, ErrorKind::invalid);
  EXPECT_EQ(zero.where, (Where{"step.mlir", 2, 0}));
  for (const char* text : {"mhlo.num_partitions = -4", "mhlo.num_partitions = 99999999999999999999",
                           "mhlo.num_replicas = x", "sdy.mesh @m = <[\"x\"=1000000, \"y\"=1000000]>"})
    EXPECT_EQ(refused(text).kind, ErrorKind::invalid) << text;
  EXPECT_NE(refused("mhlo.num_partitions = 2 sdy.mesh @m = <[\"x\"=4]>").message.find("its mesh has 4 devices"),
            std::string::npos);
  for (const char* text : {"sdy.mesh", "sdy.mesh [", "sdy.mesh ]", "mhlo.num_partitions", "\"", "\"\\", "/"})
    (void)look_at(text, "step.mlir");
}

TEST(ModuleText, bytecode_says_who_wrote_it) {
  using namespace std::string_literals;
  const ModuleText portable = seen("ML\xefR\x0dStableHLO_v1.15.0\0func mhlo.num_partitions"s);
  EXPECT_TRUE(portable.bytecode);
  EXPECT_EQ(portable.writer, "StableHLO_v1.15.0");
  EXPECT_FALSE(portable.partitions) << "the name stands there, the number cannot be read";
  EXPECT_EQ(portable.replicas, 1);
  EXPECT_EQ(seen("ML\xefR\x0d"s).writer, "");
}

TEST(ModuleText, versions) {
  EXPECT_EQ(compare_versions("StableHLO_v1.15.0", "1.13.7"), 1);
  EXPECT_EQ(compare_versions("StableHLO_v1.9.7", "1.13.7"), -1);
  EXPECT_EQ(compare_versions("1.13.7", "StableHLO_v1.13.7"), 0);
  EXPECT_FALSE(compare_versions("MLIR21.0.0git", "1.13.7"));
  EXPECT_FALSE(compare_versions("", "1.13.7"));
  EXPECT_FALSE(compare_versions("1.2", "1.13.7"));
}

}  // namespace
}  // namespace systole::prove
