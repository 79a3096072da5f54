// All of prove, with our own plugin in libtpu's place. It has no compiler, and ends as the program tells it to.

#include "predict/prove/prove.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ground/base/testing/places.h"
#include "ground/pjrt/places.h"

namespace systole::prove {
namespace {

const Catalog& catalog() {
  static const Catalog all = Catalog::read(builtin_catalog_files()).value();
  return all;
}
std::string beside(const std::string& path) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / path).string();
}

class Prove : public testing::Test {
 protected:
  Prove() {
    std::string name = (std::filesystem::temp_directory_path() / "prove-test-XXXXXX").string();
    CHECK(::mkdtemp(name.data()) != nullptr, "no temporary folder");
    folder_ = name;
    std::filesystem::create_directories(folder_ / "plugins/tpu/libtpu");
    std::filesystem::create_directories(folder_ / "temporary");
    std::filesystem::copy_file(beside("../../ground/pjrt/libpjrt_fake_plugin.so"), plugin());
    write("plugins/tpu/installed.txt", "libtpu==0.0.51 --hash=sha256:00\n");
    plays("");
    options_.child = {beside("prove_child")};
    options_.plugins = (folder_ / "plugins").string();
    options_.temporary = (folder_ / "temporary").string();
    options_.limits.timeout = Seconds(20.0);
  }
  ~Prove() override {
    EXPECT_TRUE(std::filesystem::is_empty(options_.temporary)) << "what compiling wrote is left behind";
    ::unsetenv("FAKE_PJRT");
    std::filesystem::remove_all(folder_);
  }

  void plays(const std::string& words) const { ::setenv("FAKE_PJRT", ("v5e " + words).c_str(), 1); }
  std::filesystem::path plugin() const { return folder_ / "plugins/tpu/libtpu/libtpu.so"; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  Result<Proved> proved(const std::string& code, ProofCache* cache = nullptr, const char* on = "v5e:2x2") {
    return proved(code, parse_slice(on, catalog()).value(), cache);
  }
  Result<Proved> proved(const std::string& code, const Slice& slice, ProofCache* cache = nullptr) {
    return prove(code, "step.mlir", slice, options_, cache, clock_);
  }
  void expect_refused(const std::string& code, ErrorKind kind, const std::string& part, const std::string& hint) {
    const Result<Proved> refused = proved(code);
    ASSERT_FALSE(refused.ok()) << code;
    EXPECT_EQ(refused.error().kind, kind) << refused.error().message;
    EXPECT_NE(to_string(refused.error()).find(part), std::string::npos) << to_string(refused.error());
    EXPECT_NE(refused.error().hint.find(hint), std::string::npos) << refused.error().hint;
  }
  const std::filesystem::path& folder() const { return folder_; }

  ProveOptions options_;

 private:
  std::filesystem::path folder_;
  FakeClock clock_;
};

TEST_F(Prove, what_the_compiler_says) {
  const Proof proof = proved("module { mhlo.num_partitions = 2 }").value().proof;
  EXPECT_TRUE(proof.fits);
  EXPECT_TRUE(proof.whole);
  EXPECT_EQ(proof.partitions, 2);
  EXPECT_EQ(proof.slice_devices, 4);
  EXPECT_EQ(proof.compiler, "libtpu 0.0.51, PJRT API 0.116");
  ASSERT_TRUE(proof.memory);
  EXPECT_EQ(proof.memory->needed(), Bytes(1000 + 50 + 300 - 200));
}

TEST_F(Prove, what_does_not_fit_is_its_sentence_and_no_error) {
  const Proof proof =
      proved("refuse E1000: CompileTimeHbmOom: Ran out of memory on HBM, 53.22G of 31.24G").value().proof;
  EXPECT_FALSE(proof.fits);
  EXPECT_EQ(proof.refusal, "E1000: CompileTimeHbmOom: Ran out of memory on HBM, 53.22G of 31.24G");
}

TEST_F(Prove, a_module_that_does_not_parse_has_the_parsers_place) {
  const Result<Proved> bad = proved("malformed");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(to_string(bad.error()), "step.mlir:2:19: error: expected SSA identifier");
  expect_refused("", ErrorKind::invalid, "step.mlir: error: there is no module in it", "");
}

TEST_F(Prove, an_op_that_it_does_not_compile_is_missing_here) {
  expect_refused("fail 12", ErrorKind::unsupported, "as the program wants it", "");
}

TEST_F(Prove, bytecode_of_a_newer_version_is_named) {
  using namespace std::string_literals;
  // The fake reads 1.23.0 and refuses by the program's first words. Bytecode has no words, so it accepts any.
  EXPECT_TRUE(proved("ML\xefR\x0dStableHLO_v1.24.0\0 and so on"s).ok());
  options_.partitions = 2;
  EXPECT_EQ(proved("ML\xefR\x0dStableHLO_v1.24.0\0 mhlo.num_partitions"s).value().proof.partitions, 2);
  options_.partitions.reset();
  expect_refused("ML\xefR\x0dStableHLO_v1.24.0\0 mhlo.num_partitions"s, ErrorKind::invalid,
                 "it cannot be read for how many devices", "--partitions N");
}

TEST_F(Prove, more_devices_than_the_slice_has) {
  expect_refused("module { mhlo.num_partitions = 8 }", ErrorKind::invalid,
                 "it was written for 8 devices (8 partitions x 1 replica), and v5e:2x2 has 4", "8 devices or more");
}

TEST_F(Prove, a_plugin_that_aborts_is_a_sentence) {
  expect_refused("abort", ErrorKind::io,
                 "the compiler for v5e:2x2 ended badly: killed by SIGABRT: F0000 fake_plugin.cc:2] Check failed: "
                 "devices == 4",
                 "systole doctor xla");
  plays("aborts");
  expect_refused("x", ErrorKind::io, "Check failed: it is Sunday", "systole doctor xla");
  plays("exits");
  expect_refused("x", ErrorKind::io, "ended badly: exit code 7", "systole doctor xla");
}

TEST_F(Prove, one_that_hangs_is_ended) {
  options_.limits.timeout = Seconds(0.4);
  expect_refused("hang", ErrorKind::io, "the compiler for v5e:2x2 was not done after 400 ms", "--timeout");
  plays("hangs");
  expect_refused("x", ErrorKind::io, "and not even loaded", "systole doctor xla");
}

TEST_F(Prove, one_that_eats_memory_is_ended) {
  options_.limits.memory = 200 * kMiB;
  expect_refused("eat", ErrorKind::does_not_fit, "more than the 200 MiB it may have", "--max-memory");
}

TEST_F(Prove, one_that_must_not_go_on_is_ended) {
  int asked = 0;
  options_.limits.stop = [&asked] { return ++asked > 3; };
  expect_refused("hang", ErrorKind::interrupted, "interrupted", "");
  EXPECT_EQ(asked, 4);
}

TEST_F(Prove, one_that_cannot_be_used_is_missing_here) {
  const auto unusable = [&](const std::string& part) {
    expect_refused("x", ErrorKind::unsupported, part, "tools/xla-plugins");
  };
  plays("major=1");
  unusable("another major version than 0.116");
  plays("minor=50");
  unusable("older than 0.72");
  plays("no-table");
  unusable("gives no table of functions");
  write("plugins/tpu/libtpu/libtpu.so", "half");
  unusable("cannot be loaded: it is no shared library");
  std::filesystem::remove(plugin());
  unusable("XLA's plugin 'tpu' is not in ");
}

TEST_F(Prove, one_that_is_newer_is_taken_with_a_warning) {
  plays("minor=200");
  const Proved proved_anyway = proved("x").value();
  ASSERT_EQ(proved_anyway.notes.size(), 1U);
  EXPECT_NE(proved_anyway.notes[0].message.find("PJRT API 0.200, newer than 0.116"), std::string::npos);
}

TEST_F(Prove, a_slice_that_it_does_not_know) {
  const Result<Proved> unknown = proved("x", nullptr, "v5e:3x3");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::not_found);
  EXPECT_NE(unknown.error().message.find("the compiler knows no slice 'v5e:3x3'"), std::string::npos)
      << unknown.error().message;
}

TEST_F(Prove, the_same_question_is_asked_once) {
  const std::unique_ptr<Store> store = make_memory_store();
  ProofCache cache(*store);
  EXPECT_FALSE(proved("module { }", &cache).value().cached);
  EXPECT_TRUE(proved("module { }", &cache).value().cached);
  EXPECT_FALSE(proved("module { } ", &cache).value().cached) << "another text";
  options_.flags = {{"xla_a", true}};
  EXPECT_FALSE(proved("module { }", &cache).value().cached) << "another flag";
  options_.flags = {{"xla_a", std::string("true")}};
  EXPECT_FALSE(proved("module { }", &cache).value().cached) << "another type of flag";
  options_.flags.clear();
  write("plugins/tpu/installed.txt", "libtpu==0.0.52 --hash=sha256:00\n");
  EXPECT_FALSE(proved("module { }", &cache).value().cached) << "another compiler";
  EXPECT_EQ(cache.list().value().size(), 5U);
  EXPECT_FALSE(proved("malformed", &cache).ok());
  EXPECT_EQ(cache.list().value().size(), 5U) << "an error is no proof";
  EXPECT_FALSE(proved("refuse too large", &cache).value().cached);
  options_.whole = true;
  EXPECT_TRUE(proved("refuse too large", &cache).value().cached) << "what does not fit has no end to wait for";
}

// The chip's flags reach the compiler, are part of the key, and appear in the proof; a user's flag of the same name
// wins.
TEST_F(Prove, the_chips_flags_are_given_to_its_compiler) {
  Slice slice = parse_slice("v5e:2x2", catalog()).value();
  EXPECT_FALSE(proved("wants kib_98304", slice).ok());
  slice.flags = {{"xla_limit", std::string("kib_98304")}};
  const std::unique_ptr<Store> store = make_memory_store();
  ProofCache cache(*store);
  const Proved told = proved("wants kib_98304", slice, &cache).value();
  EXPECT_EQ(told.proof.flags, (std::map<std::string, std::string>{{"xla_limit", "kib_98304"}}));
  EXPECT_EQ(proved("wants kib_98304", slice, &cache).value().proof, told.proof) << "as it is read back";
  options_.flags = {{"xla_limit", std::string("kib_98304")}};
  EXPECT_TRUE(proved("wants kib_98304", slice, &cache).value().cached) << "the same flag, of the user";
  options_.flags = {{"xla_limit", std::int64_t{4096}}, {"xla_other", true}};
  EXPECT_FALSE(proved("wants kib_98304", slice, &cache).ok()) << "the user's wins";
  EXPECT_EQ(proved("x", slice, &cache).value().proof.flags,
            (std::map<std::string, std::string>{{"xla_limit", "4096"}, {"xla_other", "true"}}));
  options_.flags.clear();
  EXPECT_FALSE(proved("x", slice, &cache).value().cached) << "of the key";
}

// With libtpu, if tools/xla-plugins has installed it; some seconds each.
class XlaPluginTpu : public Prove {
 protected:
  void SetUp() override {
    options_.plugins = pjrt::plugins_folder();
    if (!pjrt::find_plugin("tpu", options_.plugins).ok()) GTEST_SKIP() << "no plugin: tools/xla-plugins tpu";
    options_.limits.timeout = Seconds(300.0);
  }
  static std::string module(const std::string& name) {
    std::ifstream file(std::string(SYSTOLE_SOURCE_DIR) + "/src/predict/prove/testing/" + name);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
};

// Sharded by hand, and ended as soon as memory is laid out.
TEST_F(XlaPluginTpu, ProvesWhatJaxWroteOfOneDevice) {
  const Proof proof = proved(module("jax_shard_map.mlir")).value().proof;
  EXPECT_TRUE(proof.fits);
  EXPECT_FALSE(proof.whole);
  EXPECT_EQ(proof.partitions, 4);
  EXPECT_EQ(proof.compiler.substr(0, 7), "libtpu ");
  ASSERT_TRUE(proof.memory);
  constexpr std::int64_t kWeights = (256 * 512 + 512 * 128) * 4;
  EXPECT_EQ(proof.memory->arguments, Bytes(kWeights + 16 * 256 * 4));
  EXPECT_EQ(proof.memory->aliased, Bytes(kWeights)) << "they are donated";
  ASSERT_TRUE(proof.memory->limit);
  EXPECT_GT(*proof.memory->limit, 15 * kGiB);
  EXPECT_LT(*proof.memory->limit, 16 * kGiB);
  // The compiler may combine the three means into fewer messages; their total is the weights and the loss.
  Bytes sent;
  for (const CompiledCollective& collective : proof.executed.collectives) {
    EXPECT_EQ(collective.kind, "all_reduce");
    EXPECT_EQ(collective.group, 4);
    sent += collective.bytes * collective.executed;
  }
  EXPECT_EQ(sent, Bytes(kWeights + 4));
  // Five products of 16 rows: two forward, three backward.
  EXPECT_EQ(proof.executed.product_flops, 2.0 * 16 * (2 * 256 * 512 + 3 * 512 * 128));
}

// Sharded by the compiler, and compiled to the end: its own statistics agree with those from its dump.
TEST_F(XlaPluginTpu, ProvesWhatJaxWroteOfAllDevices) {
  options_.whole = true;
  const std::string code = module("jax_sharded.mlir");
  const Proof whole = proved(code).value().proof;
  EXPECT_TRUE(whole.fits);
  EXPECT_TRUE(whole.whole);
  EXPECT_GT(whole.executed.cycles, 0);
  ASSERT_TRUE(whole.compute);
  EXPECT_EQ(whole.executed.collectives.size(), 1U) << "the product whose contracted dim is cut";
  EXPECT_EQ(whole.executed.collectives[0].kind, "all_reduce");
  EXPECT_EQ(whole.executed.collectives[0].bytes, Bytes(64 * 128 * 4));
  EXPECT_NE(whole.executed.collectives[0].source.find("dot_general"), std::string::npos);
  ASSERT_TRUE(whole.flops);
  EXPECT_NEAR(whole.executed.product_flops / *whole.flops, 1, 0.05) << "theirs has the rest, elementwise, too";
  options_.whole = false;
  const Proof early = proved(code).value().proof;
  EXPECT_FALSE(early.whole);
  EXPECT_EQ(early.memory->arguments, whole.memory->arguments);
  EXPECT_EQ(early.memory->outputs, whole.memory->outputs);
  EXPECT_EQ(early.memory->aliased, whole.memory->aliased);
  EXPECT_NEAR(early.memory->temporaries / whole.memory->temporaries, 1, 0.2) << "a few KiB of its own are not in it";
  EXPECT_EQ(early.executed.collectives, whole.executed.collectives);
  EXPECT_EQ(early.executed.product_flops, whole.executed.product_flops);
}

TEST_F(XlaPluginTpu, WhatDoesNotFitIsSaidWithItsMemory) {
  const Proof proof = proved(R"(module @large {
  func.func public @main(%a: tensor<65536x65536xf32>, %b: tensor<65536x65536xf32>) -> tensor<65536x65536xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<65536x65536xf32>, tensor<65536x65536xf32>) -> tensor<65536x65536xf32>
    return %0 : tensor<65536x65536xf32>
  }
})")
                          .value()
                          .proof;
  EXPECT_FALSE(proof.fits);
  EXPECT_NE(proof.refusal.find("Ran out of memory on HBM"), std::string::npos) << proof.refusal;
  EXPECT_EQ(proof.refusal.find("libtpu.so"), std::string::npos) << proof.refusal;
  ASSERT_TRUE(proof.memory);
  EXPECT_EQ(proof.memory->needed(), 48 * kGiB);
  expect_refused("module {\n  func.func @main( {\n}", ErrorKind::invalid, "step.mlir:2:19: error: expected", "");
}

}  // namespace
}  // namespace systole::prove
