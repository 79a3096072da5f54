#include "ground/catalog/catalog.h"
#include "ground/base/testing/places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace systole {
namespace {

Catalog builtin() { return Catalog::read(builtin_catalog_files()).value(); }

std::string file(const std::string& entries) { return "systole_catalog: 1\nentries:\n" + entries; }

Result<Catalog> read(const std::vector<std::string>& texts) {
  std::vector<CatalogFile> files;
  for (const std::string& text : texts) files.push_back({"f" + std::to_string(files.size()), text});
  return Catalog::read(files);
}

constexpr const char* kOne =
    "  a:\n    kind: cpu\n    facts:\n      matmul.f32: { value: 2 GFLOP/s, source: s, date: 2026-01-02 }\n"
    "      call: { value: 3 us, source: s, date: 2026-03-02 }\n";

TEST(Catalog, embeds_the_files_as_they_are) {
  for (const CatalogFile& embedded : builtin_catalog_files()) {
    std::stringstream text;
    text << std::ifstream(std::string(SYSTOLE_SOURCE_DIR) + "/" + embedded.name).rdbuf();
    EXPECT_EQ(embedded.text, text.str()) << embedded.name;
  }
  EXPECT_FALSE(builtin_catalog_files().empty());
}

TEST(Catalog, every_cpu_entry_states_what_a_prediction_needs_and_is_uncalibrated) {
  const Catalog catalog = builtin();
  for (const char* name : {"cpu-avx2", "cpu-avx512", "cpu-avx512_bf16", "cpu-amx"}) {
    const CatalogEntry& entry = *catalog.find(name).value();
    EXPECT_EQ(entry.kind, "cpu");
    EXPECT_EQ(entry.per, "core");
    EXPECT_FALSE(entry.calibrated);
    for (const char* key : {"matmul.f32", "matmul.bf16", "kernel.f32"})
      EXPECT_GT(entry.flop_rate(key).value(), FlopRate(0)) << key;
    for (const char* key : {"chain.f32", "elementary.f32"}) EXPECT_GT(entry.per_second(key).value(), 0) << key;
    EXPECT_GT(entry.bytes_per_second("memory.bandwidth").value(), BytesPerSecond(0));
    EXPECT_GT(entry.bytes_per_second("cache.l2.bandwidth").value(), entry.bytes_per_second("memory.bandwidth").value());
    EXPECT_GT(entry.bytes("cache.l2.size").value(), Bytes(0));
    EXPECT_GT(entry.seconds("call").value(), Seconds(0));
  }
  EXPECT_EQ(catalog.find("cpu-avx512_bf16").value()->flop_rate("matmul.bf16").value(), FlopRate(0.1925e12));
}

TEST(Catalog, what_it_does_not_know_is_an_error_with_the_nearest_names) {
  const Catalog catalog = builtin();
  const auto none = catalog.find("cpu-avx521");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
  EXPECT_NE(none.error().hint.find("'cpu-avx512'"), std::string::npos) << none.error().hint;
  const CatalogEntry& entry = *catalog.find("cpu-amx").value();
  EXPECT_NE(entry.flop_rate("matmul.bf61").error().hint.find("'matmul.bf16'"), std::string::npos);
  EXPECT_EQ(entry.bytes("matmul.bf16").error().kind, ErrorKind::invalid);
}

TEST(Catalog, the_users_facts_win_one_by_one) {
  const Catalog catalog = read({file(kOne), file("  a:\n    calibrated: true\n    facts:\n"
                                                 "      call: { value: 1 us, source: me, date: 2026-05-05 }\n")})
                              .value();
  const CatalogEntry& a = *catalog.find("a").value();
  EXPECT_TRUE(a.calibrated);
  EXPECT_EQ(a.kind, "cpu");
  EXPECT_EQ(a.seconds("call").value(), Seconds(1e-6));
  EXPECT_EQ(a.facts.at("call").source, "me");
  EXPECT_EQ(a.flop_rate("matmul.f32").value(), FlopRate(2e9));
  EXPECT_EQ(catalog.date(), "2026-05-05");
  EXPECT_NE(catalog.hash(), read({file(kOne)})->hash());
}

// A user's file removes a flag by setting it to null.
TEST(Catalog, the_users_flags_of_a_compiler_win_one_by_one) {
  const std::string chip = "  a:\n    kind: tpu\n    compiler:\n";
  const std::string own = file(chip +
                               "      xla_a: { value: 98304, source: s, date: 2026-01-02 }\n"
                               "      xla_b: { value: true, source: s, date: 2026-03-02 }\n");
  const Catalog first = read({own}).value();
  EXPECT_EQ(first.date(), "2026-03-02");
  const Catalog over =
      read({own, file("  a:\n    compiler:\n      xla_a: { value: 1, source: me, date: 2026-01-03 }\n"
                      "      xla_b: null\n      xla_c: { value: fast, source: me, date: 2026-01-03 }\n")})
          .value();
  const std::map<std::string, CompilerFlag>& flags = over.find("a").value()->compiler;
  ASSERT_EQ(flags.size(), 2U);
  EXPECT_EQ(flags.at("xla_a").value, "1");
  EXPECT_EQ(flags.at("xla_a").source, "me");
  EXPECT_EQ(flags.at("xla_c").value, "fast");
  EXPECT_NE(first.hash(), over.hash());
  for (const char* wrong : {"      xla_a: 98304\n", "      xla_a: { value: 1, date: 2026-01-02 }\n",
                            "      xla_a: { source: s, date: 2026-01-02 }\n", "      - xla_a=1\n",
                            "      --xla_a: { value: 1, source: s, date: 2026-01-02 }\n"})
    EXPECT_FALSE(read({file(chip + wrong)}).ok()) << wrong;
}

TEST(Catalog, a_bad_file_is_refused_with_all_its_errors) {
  const auto bad =
      read({file("  a:\n    kynd: cpu\n    facts:\n      x: { value: 3 parsecs, source: s, date: 2026-01-02 }\n"
                 "      y: { value: 1, date: yesterday }\n")});
  ASSERT_FALSE(bad.ok());
  const std::string text = to_string(bad.error());
  for (const char* says : {"f0:4:5: error: unknown key 'kynd'", "did you mean 'kind'", "'3 parsecs' is no value",
                           "'source' is missing", "YYYY-MM-DD"}) {
    EXPECT_NE(text.find(says), std::string::npos) << says << "\n" << text;
  }
  EXPECT_EQ(read({"systole_catalog: 2\nentries: {}"}).error().kind, ErrorKind::unsupported);
  for (const char* none : {"", "[]", "entries: {}", "systole_catalog: 1", "systole_catalog: 1\nentries: 3"}) {
    EXPECT_FALSE(read({none}).ok()) << none;
  }
}

TEST(Catalog, what_vendors_call_a_chip) {
  std::set<std::string> names;
  const Catalog catalog = builtin();
  for (const auto& [name, entry] : catalog.entries()) {
    EXPECT_TRUE(entry.called.empty() || entry.kind == "tpu" || entry.kind == "gpu") << name;
    // Every chip that a vendor's compiler knows has a runtime name.
    EXPECT_FALSE(entry.called.empty() && entry.facts.contains("clock")) << name;
    for (const std::string& called : entry.called) EXPECT_TRUE(names.insert(called).second) << called << " is two";
  }
  const std::string chip = "  a:\n    kind: gpu\n    called: ";
  const Catalog own = read({file(chip + "[One, The Other]\n"), file(chip + "[Another]\n")}).value();
  EXPECT_EQ(own.find("a").value()->called, std::vector<std::string>{"Another"});
  for (const char* wrong : {"One\n", "{ a: b }\n", "[[One]]\n"}) EXPECT_FALSE(read({file(chip + wrong)}).ok()) << wrong;
}

TEST(Catalog, values_mean_what_they_say) {
  const auto value = [](const char* text) { return parse_catalog_value(text).value().value; };
  EXPECT_EQ(value("0.385 TFLOP/s"), 0.385e12);
  EXPECT_EQ(value("10 GB/s"), 1e10);
  EXPECT_EQ(value("10 GiB/s"), 10.0 * (1 << 30));
  EXPECT_EQ(value("2MiB"), 2.0 * (1 << 20));
  EXPECT_EQ(value("3 us"), 3e-6);
  EXPECT_EQ(value("1 G/s"), 1e9);
  EXPECT_EQ(value("7"), 7);
  EXPECT_EQ(parse_catalog_value("$2.5/h")->unit, CatalogUnit::dollars_per_hour);
  EXPECT_EQ(parse_catalog_value("$2")->unit, CatalogUnit::dollars);
  for (const char* text : {"", "fast", "-1 B", "1 GiFLOP/s", "1 ks", "$1/s", "1 gb", "nan", "1  B", "inf B/s"}) {
    EXPECT_FALSE(parse_catalog_value(text).ok()) << text;
  }
}

TEST(Catalog, accelerators_go_by_the_names_of_clouds_too) {
  const Catalog catalog = builtin();
  EXPECT_EQ(catalog.find_accelerator("h100").value()->name, "h100");
  EXPECT_EQ(catalog.find_accelerator("H100").value()->name, "h100");
  EXPECT_EQ(catalog.find_accelerator("nvidia-tesla-a100").value()->name, "a100-40gb");
  EXPECT_EQ(catalog.find_accelerator("nvidia-a100-80gb").value()->name, "a100");
  EXPECT_EQ(catalog.find_accelerator("v5litepod").value()->name, "v5e");
  EXPECT_EQ(catalog.find_accelerator("Trillium").value()->name, "v6e");
  EXPECT_NE(catalog.find_accelerator("h1000").error().hint.find("'h100'"), std::string::npos);
  EXPECT_NE(catalog.find_accelerator("abacus").error().hint.find("a100, a100-40gb, b200"), std::string::npos);
  EXPECT_FALSE(catalog.find_accelerator("cpu-avx2").ok());
}

// Names from nvidia-smi, JAX, Slurm's gres lists, data sheets.
TEST(Catalog, accelerators_go_by_the_names_of_their_makers_too) {
  const Catalog catalog = builtin();
  const std::pair<const char*, const char*> kPeoples[] = {
      {"Tesla T4", "t4"},
      {"tesla_t4", "t4"},
      {"NVIDIA T4", "t4"},
      {"NVIDIA A100-SXM4-80GB", "a100"},
      {"A100-SXM4-80GB", "a100"},
      {"nvidia_a100-sxm4-80gb", "a100"},
      {"A100 80GB", "a100"},
      {"A100-40GB", "a100-40gb"},
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"H100 80GB HBM3", "h100"},
      {"H100-80GB", "h100"},
      {"H100 SXM", "h100"},
      {"h100-sxm5-80gb", "h100"},
      {"NVIDIA H200", "h200"},
      {"H200 SXM", "h200"},
      {"NVIDIA L4", "l4"},
      {"V100-SXM2-16GB", "v100"},
      {"Tesla V100-SXM2-16GB", "v100"},
      {"V100-16GB", "v100"},
      {"NVIDIA V100", "v100"},
      {"NVIDIA B300", "b300"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"},
      {"TPU v5 lite", "v5e"},
      {"TPU v6 lite", "v6e"},
      {"TPU v5", "v5p"},
      {"tpu_v4", "v4"},
      {"TPU v7x", "tpu7x"},
  };
  for (const auto& [name, entry] : kPeoples) {
    const auto found = catalog.find_accelerator(name);
    EXPECT_EQ(found.ok() ? (*found)->name : to_string(found.error()), entry) << name;
  }
  // Never guessed: a name with two sizes, or a form factor that the catalog lacks.
  for (const char* either : {"NVIDIA A100", "Tesla A100"}) {
    const auto which = catalog.find_accelerator(either);
    ASSERT_FALSE(which.ok()) << either;
    EXPECT_EQ(which.error().message, fmt::format("'{}' may be a100 or a100-40gb", either));
  }
  for (const char* other : {"Tesla V100-SXM2-32GB", "NVIDIA H100 PCIe", "NVIDIA A100-PCIE-40GB", "NVIDIA H200 NVL"}) {
    const auto none = catalog.find_accelerator(other);
    ASSERT_FALSE(none.ok()) << other;
    EXPECT_EQ(none.error().hint.find(other), std::string::npos) << none.error().hint;
    EXPECT_FALSE(none.error().hint.empty());
  }
}

TEST(Catalog, a_name_is_of_one_accelerator_alone) {
  const Catalog catalog = builtin();
  int names = 0;
  for (const auto& [key, entry] : catalog.entries()) {
    if (entry.kind != "gpu" && entry.kind != "tpu") continue;
    for (const std::string& name : names_of(entry)) {
      ++names;
      const auto found = catalog.find_accelerator(name);
      ASSERT_TRUE(found.ok()) << name;
      EXPECT_EQ((*found)->name, key) << name;
    }
  }
  EXPECT_GT(names, 25) << "more than there are accelerators";
}

// 15 GPUs and 10 TPUs; three of the TPUs are only announced or only a name.
TEST(Catalog, all_accelerators_are_there_and_their_peaks_are_dense) {
  const Catalog catalog = builtin();
  int gpus = 0, tpus = 0;
  std::set<std::string> names;
  for (const auto& [name, entry] : catalog.entries()) {
    if (entry.kind != "gpu" && entry.kind != "tpu") continue;
    ++(entry.kind == "gpu" ? gpus : tpus);
    EXPECT_FALSE(entry.status.empty()) << name;
    names.insert(name);
    for (const std::string& other : entry.also) EXPECT_TRUE(names.insert(other).second) << other << " is two";
    for (const auto& [key, fact] : entry.facts) {
      if (!key.starts_with("matmul.")) continue;
      EXPECT_EQ(fact.unit, CatalogUnit::flop_rate) << name << " " << key;
      const bool says = fact.source.find("dense") != fact.source.npos ||
                        fact.source.find("half of") != fact.source.npos ||
                        fact.source.find("matrix units") != fact.source.npos || name.starts_with("v");
      EXPECT_TRUE(says) << name << " " << key << ": " << fact.source;
    }
  }
  EXPECT_EQ(gpus, 17);  // two of them in no known cloud
  EXPECT_EQ(tpus, 10);
}

// Makers' figures: H100 SXM 989 and 1,979 dense, where Google's page has 1,979 and 3,958 with sparsity; L4 121 where it
// has 242; v5p's links in cubes.
TEST(Catalog, figures_of_the_makers_pages) {
  const Catalog catalog = builtin();
  const auto rate = [&](const char* chip, const char* key) {
    return catalog.find(chip).value()->flop_rate(key).value().count() / 1e12;
  };
  EXPECT_EQ(rate("h100", "matmul.bf16"), 989);
  EXPECT_EQ(rate("h100", "matmul.fp8"), 1979);
  EXPECT_EQ(rate("h100", "matmul.tf32"), 494.5);
  EXPECT_EQ(rate("l4", "matmul.bf16"), 121);
  EXPECT_EQ(rate("a100-40gb", "matmul.int8"), 624);
  EXPECT_EQ(rate("v5p", "matmul.int8"), 918);
  EXPECT_EQ(rate("tpu7x", "matmul.fp8"), 4614);
  EXPECT_EQ(rate("t4", "vector.f32"), 8.1);
  EXPECT_EQ(catalog.find("v3").value()->bytes("memory").value(), 32 * kGiB);
  EXPECT_EQ(catalog.find("h100").value()->bytes_per_second("nvlink.bandwidth").value(), BytesPerSecond(450e9));
  EXPECT_EQ(catalog.find("v5p").value()->bytes_per_second("dcn.bandwidth").value(), BytesPerSecond(6.25e9));
  for (const char* none : {"v100", "t4", "p100", "k80"})
    EXPECT_FALSE(catalog.find(none).value()->facts.contains("matmul.bf16")) << none << " has no bf16";
}

TEST(Catalog, the_users_folder) {
  EXPECT_EQ(user_catalog_folder("/x", "/h"), "/x/systole/catalog");
  EXPECT_EQ(user_catalog_folder(nullptr, "/h"), "/h/.config/systole/catalog");
  EXPECT_EQ(user_catalog_folder("", nullptr), "");
  const std::string folder = testing::TempDir() + "/systole_catalog_test";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(read_catalog_folder(folder).value().empty());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/b.yaml") << file(kOne);
  std::ofstream(folder + "/a.yaml") << "systole_catalog: 1\nentries: {}\n";
  std::ofstream(folder + "/notes.txt") << "x";
  const std::vector<CatalogFile> files = read_catalog_folder(folder).value();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_TRUE(files[0].name.ends_with("a.yaml"));
  EXPECT_TRUE(Catalog::read(files).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace systole
