#include "predict/prove/module_text.h"
#include "ground/base/testing/places.h"
#include "ground/base/testing/processor_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

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

// Compilers refuse quantised types, some of them without a location.
TEST(ModuleText, a_quantised_type_has_its_line_and_a_way_out) {
  const Error refused = look_at(R"(module @q {
  // !quant.uniform is not meant
  func.func public @main(%a: tensor<16x16x!quant.uniform<i8:f32, 0.5:10>>) -> tensor<16x16xf32> {
  }
})",
                                "step.mlir")
                            .error();
  EXPECT_EQ(refused.kind, ErrorKind::unsupported);
  EXPECT_EQ(refused.where, (Where{"step.mlir", 3, 0}));
  EXPECT_EQ(refused.message, "!quant.uniform is a quantised type, and XLA's compilers have none");
  EXPECT_NE(refused.hint.find("legalize-quant-to-math"), std::string::npos);
  EXPECT_TRUE(look_at("module { } // !quant.uniform<i8:f32, 0.5>", "step.mlir").ok());
}

TEST(ModuleText, words_that_a_refusal_may_be_about) {
  const auto foreign = [](std::string_view text) { return foreign_float(text); };
  EXPECT_EQ(foreign("tensor<2xf8E4M3FN>, tensor<f8E5M2>, tensor<2xf4E2M1FN> %f8E9M9 @f8E9 f32 \"f8E9M9\""),
            std::nullopt);
  const auto found = foreign("module {\n %a: tensor<2xf8E4M3FN>\n %b: tensor<2x2xf8E9M9>");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->word, "f8E9M9");
  EXPECT_EQ(found->line, 3);
  EXPECT_EQ(foreign("f"), std::nullopt);
  EXPECT_EQ(foreign("xf8"), std::nullopt);
  EXPECT_EQ(foreign("xf8E"), std::nullopt);
  const std::string_view calls = "\nstablehlo.custom_call @mine_too\n\"stablehlo.custom_call\" {name = \"mine\"}";
  EXPECT_EQ(line_of_custom_call(calls, "mine"), 3);
  EXPECT_EQ(line_of_custom_call(calls, "mine_too"), 2);
  EXPECT_EQ(line_of_custom_call(calls, "other"), std::nullopt);
}

TEST(ModuleText, what_is_something_else_is_told_so) {
  const auto refused = [](std::string_view code) { return to_string(look_at(code, "step.mlir").error()); };
  const std::string_view zip("PK\x03\x04 and so on"), gzip("\x1f\x8b\x08 and so on");
  for (const std::string_view code : {zip, gzip})
    EXPECT_NE(refused(code).find("neither StableHLO's text nor its bytecode"), std::string::npos) << code;
  EXPECT_NE(refused("HloModule jit_step, entry_computation_layout={}").find("this is HLO"), std::string::npos);
  EXPECT_TRUE(look_at("// \xc3\xa9t\xc3\xa9\r\n\tmodule { }", "step.mlir").ok());
  EXPECT_EQ(to_string(too_large("step.mlir")),
            "step.mlir: error: modules are read up to 1.00 GiB\n  hint: weights are to be arguments of @main, not "
            "constants in it");
}

// Modules as JAX and others write them, with parts removed, doubled or moved, and bytes changed: every input gets an
// answer, and its numbers are counts of devices.
TEST(ModuleText, whatever_comes_has_an_answer) {
  std::vector<std::string> seeds{"module { sdy.mesh @m = <[\"data\"=4, \"model\"=2], device_ids=[0, 1]> }",
                                 "mhlo.num_partitions = 8 : i32 // comment\n \"text \\\" \" sdy.mesh @m = <[]>"};
  for (const char* name : {"jax_sharded.mlir", "jax_shard_map.mlir"}) {
    std::ifstream file(SYSTOLE_SOURCE_DIR "/src/predict/prove/testing/" + std::string(name));
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    ASSERT_GT(seeds.back().size(), 1000U) << name;
  }
  const char* given = std::getenv("SYSTOLE_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : 1;
  const int tries = std::getenv("SYSTOLE_TEST_LONG") != nullptr ? 20000 : 1000;
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  int well = 0;
  for (int i = 0; i < tries; ++i) {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t changes = below(6); changes > 0; --changes) {
      const std::size_t at = below(text.size()), length = below(std::min<std::size_t>(80, text.size() - at));
      const std::string part = text.substr(at, length);
      switch (below(5)) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(below(text.size()), part); break;
        case 2: text.insert(at, 1, "\"\\[]=/\n<>{}0123456789-"[below(23)]); break;
        case 3: text.resize(at); break;
        default:
          if (!text.empty()) text[at] = static_cast<char>(random());
      }
    }
    const Result<ModuleText> seen = look_at(text, "step.mlir");
    if (!seen.ok()) {
      EXPECT_EQ(seen.error().kind, ErrorKind::invalid) << "seed " << seed << " try " << i;
      continue;
    }
    ++well;
    for (const auto& count : {seen->partitions, seen->replicas})
      EXPECT_TRUE(!count || (*count >= 1 && *count <= 1'000'000)) << "seed " << seed << " try " << i;
  }
  EXPECT_GT(well, tries / 20);
}

// 4 MiB of text at which a scan might restart again and again. That would take minutes; it takes less than a second.
TEST(ModuleText, time_grows_with_the_length_alone) {
  for (const std::string part : {"sdy.mesh ", "sdy.mesh [", "sdy.mesh [=1", "sdy.mesh ]", "\"", "//", "\\",
                                 "mhlo.num_partitions ", "sdy.mesh @m = <[\"x\"=1]> "}) {
    std::string text;
    while (text.size() < (std::size_t{4} << 20)) text += part;
    const Seconds began = processor_time();
    (void)look_at(text, "step.mlir");
    EXPECT_LT(processor_time() - began, Seconds(10.0)) << part;
  }
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
