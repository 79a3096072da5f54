// Defective plugins, and versions no longer shipped, with our own plugin (testing/).

#include "ground/pjrt/plugin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ground/pjrt/abi_calls.h"
#include "ground/pjrt/gpu_topology.h"
#include "ground/pjrt/places.h"
#include "ground/pjrt/topology.h"

namespace systole::pjrt {
namespace {

std::string beside(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}
const std::string& fake() {
  static const std::string path = beside("libpjrt_fake_plugin.so");
  return path;
}

Result<Plugin> loaded(const char* as) {
  ::setenv("FAKE_PJRT", as, 1);
  return Plugin::load(fake());
}

int alive() {
  void* library = ::dlopen(fake().c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<int (*)()>(::dlsym(library, "fake_pjrt_alive"))();
}

class PluginFile : public testing::Test {
 protected:
  PluginFile() : folder_(std::filesystem::temp_directory_path() / fmt::format("pjrt_test_{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~PluginFile() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return (folder_ / name).string();
  }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

void expect_error(const Result<Plugin>& result, ErrorKind kind, const std::string& part) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, kind) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().hint.find("tools/xla-plugins"), std::string::npos) << result.error().hint;
}

TEST_F(PluginFile, WhatIsNoPluginIsSaid) {
  expect_error(Plugin::load("/no/such/libtpu.so"), ErrorKind::not_found, "there is no plugin at /no/such/libtpu.so");
  expect_error(Plugin::load(folder().string()), ErrorKind::invalid, "is no file");
  expect_error(Plugin::load(file("text.so", "hello")), ErrorKind::corrupt, "cannot be loaded");
  std::ifstream library(fake(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(library)), std::istreambuf_iterator<char>());
  for (const std::size_t length : {std::size_t{10}, std::size_t{100}, std::size_t{600}, std::size_t{5000}})
    expect_error(Plugin::load(file(fmt::format("{}.so", length), whole.substr(0, length))), ErrorKind::corrupt,
                 length < 64 ? "no shared library" : "it is cut off after");
  std::string other = whole;
  other[18] = 3;  // e_machine: 386
  expect_error(Plugin::load(file("other.so", other)), ErrorKind::corrupt, "another kind of processor");
  expect_error(Plugin::load(beside("libpjrt_no_plugin.so")), ErrorKind::invalid, "it has no GetPjrtApi");
  expect_error(loaded("no-table"), ErrorKind::corrupt, "gives no table");
  expect_error(loaded("short"), ErrorKind::corrupt, "gives no table");
}

TEST(PluginVersion, ARangeIsTakenAndNewerOnesWithAWarning) {
  expect_error(loaded("minor=71"), ErrorKind::unsupported, "speaks PJRT API 0.71, older than 0.72");
  expect_error(loaded("major=1 minor=0"), ErrorKind::unsupported, "speaks PJRT API 1.0, another major version");
  for (const char* as : {"minor=72", "minor=90", "minor=116"}) EXPECT_EQ(loaded(as).value().warning(), "") << as;
  const Plugin newer = loaded("minor=117").value();
  EXPECT_NE(newer.warning().find("PJRT API 0.117, newer than 0.116"), std::string::npos) << newer.warning();
  EXPECT_EQ(newer.newest_stablehlo(), "1.23.0");
  EXPECT_EQ(newer.attributes().value().size(), 1U) << "a value of an unknown type is left out";
}

// All struct sizes of a version: the fake refuses others.
TEST(PluginVersion, StructsAreAsLongAsTheVersionHasThem) {
  for (const int minor : {72, 89, 90, 103, 104, 116, 300}) {
    const Plugin plugin = loaded(fmt::format("minor={}", minor).c_str()).value();
    const Executable executable = Topology::create(plugin, "fake:4").value().compile({.code = "x"}, {}).value();
    const Result<MemoryStats> memory = executable.memory();
    ASSERT_TRUE(memory.ok()) << minor << ": " << memory.error().message;
    EXPECT_EQ(memory->needed(), Bytes(1150));
    EXPECT_EQ(memory->peak, Bytes(1150));
    EXPECT_EQ(memory->allocated, minor < 104 ? std::nullopt : std::optional(Bytes(1400)));
  }
  EXPECT_EQ(abi::size_at<abi::ExecuteOptions>(72), 80U);
  EXPECT_EQ(abi::size_at<abi::ExecuteOptions>(76), 88U);
  EXPECT_EQ(abi::size_at<abi::ExecuteOptions>(81), 112U);
  EXPECT_EQ(abi::size_at<abi::ExecuteOptions>(105), 120U);
  EXPECT_EQ(abi::size_at<abi::ExecuteOptions>(114), 144U);
}

TEST(PluginErrors, AreItsMessageUnderAKindOfOurs) {
  expect_error(loaded("minor=1"), ErrorKind::unsupported, "older");
  const Result<Plugin> off = loaded("refuses");
  ASSERT_FALSE(off.ok());
  EXPECT_EQ(off.error().message, "libpjrt_fake_plugin.so (API 0.116): start: UNAVAILABLE: its lamp is off");
  const Plugin plugin = loaded("").value();
  const Result<Topology> unknown = Topology::create(plugin, "v5e:2x2");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::not_found);
  EXPECT_EQ(
      unknown.error().message,
      "libpjrt_fake_plugin.so (API 0.116): make the topology v5e:2x2: NOT_FOUND: no topology 'v5e:2x2': fake:1 to "
      "fake:9 are known");
  const Topology topology = Topology::create(plugin, "fake:2").value();
  EXPECT_EQ(topology.platform().value(), "fake");
  const auto kind = [&](const char* code) { return topology.compile({.code = code}, {}).error().kind; };
  EXPECT_EQ(kind("fail 8"), ErrorKind::does_not_fit);
  EXPECT_EQ(kind("fail 3"), ErrorKind::invalid);
  EXPECT_EQ(kind("fail 12"), ErrorKind::unsupported);
  EXPECT_EQ(kind("fail 13"), ErrorKind::io);
  EXPECT_EQ(kind("fail 99"), ErrorKind::invalid) << "a code of tomorrow";
}

TEST(PluginErrors, AFunctionThatItHasNotIsSaid) {
  const Topology topology = Topology::create(loaded("").value(), "fake:2").value();
  EXPECT_EQ(topology.devices().error().message,
            "libpjrt_fake_plugin.so (API 0.116) has no function to list its devices");
  EXPECT_EQ(topology.devices().error().kind, ErrorKind::unsupported);
  const Plugin few = loaded("functions=50").value();
  EXPECT_EQ(Topology::create(few, "fake:2").error().kind, ErrorKind::unsupported);
}

TEST(PluginObjects, AreFreedOnce) {
  const int before = alive();
  {
    const Plugin plugin = loaded("").value();
    Topology topology = Topology::create(plugin, "fake:2").value();
    const Topology same = topology;
    const Executable executable = topology.compile({.code = "x"}, {}).value();
    EXPECT_EQ(alive(), before + 2);
    topology = Topology::create(plugin, "fake:3").value();
    EXPECT_EQ(alive(), before + 3);
    (void)topology.compile({.code = "fail 3"}, {});
    (void)loaded("refuses");
  }
  EXPECT_EQ(alive(), before);
}

TEST_F(PluginFile, PlacesAreWhatTheToolMakes) {
  const std::string at = folder().string();
  const Result<PluginPlace> missing = find_plugin("tpu", at);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::unsupported);
  EXPECT_EQ(missing.error().hint, "tools/xla-plugins --folder " + at + " tpu");
  EXPECT_EQ(find_plugin("abacus", at).error().kind, ErrorKind::invalid);
  std::filesystem::create_directories(folder() / "tpu" / "libtpu");
  file("tpu/libtpu/libtpu.so", "");
  file("tpu/installed.txt", "libtpu==0.0.51 --hash=sha256:00\nkeep: libtpu/libtpu.so\n");
  const PluginPlace place = find_plugin("tpu", at).value();
  EXPECT_EQ(place.path, at + "/tpu/libtpu/libtpu.so");
  EXPECT_EQ(place.version, "libtpu 0.0.51");

  ::setenv("SYSTOLE_XLA_PLUGINS", "/a", 1);
  EXPECT_EQ(plugins_folder(), "/a");
  EXPECT_EQ(plugins_folder("/b"), "/b");
  EXPECT_EQ(find_plugin("gpu", "/a").error().hint, "tools/xla-plugins gpu");
  ::unsetenv("SYSTOLE_XLA_PLUGINS");
  ::setenv("XDG_DATA_HOME", "/c", 1);
  EXPECT_EQ(plugins_folder(), "/c/systole/xla-plugins");
}

TEST(GpuTopology, IsTextOfTheFacts) {
  GpuFacts gpu;
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.capability_major = 9;
  gpu.accelerated_features = true;
  gpu.cores = 132;
  gpu.clock_ghz = 1.98;
  gpu.memory = Bytes(80'000'000'000);
  gpu.l2_cache = Bytes(52428800);
  gpu.memory_bandwidth = BytesPerSecond(3.35e12);
  gpu.shared_memory_per_block_optin = Bytes(232448);
  EXPECT_THROW(gpu_topology_options(gpu, {}), Failure) << "the shared memory of a core is missing";
  gpu.shared_memory_per_core = Bytes(233472);
  const std::vector<NamedValue> options = gpu_topology_options(gpu, {.hosts = 2, .devices = 8});
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(to_string(options[0]), "topology = 1x2x8");
  const std::string& text = std::get<std::string>(options[1].value);
  for (const char* line : {"  core_count: 132\n", "  memory_bandwidth: 3350000000000\n", "  clock_rate_ghz: 1.98\n",
                           "  device_memory_size: 80000000000\n",
                           "  cuda_compute_capability { major: 9 minor: 0 feature_extension: ACCELERATED_FEATURES }\n",
                           "}\nplatform_name: \"CUDA\"\ndevice_description_str: \"NVIDIA H100 80GB HBM3\"\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
  gpu.name = "a \"quoted\" name";
  EXPECT_THROW(gpu_topology_options(gpu, {}), Failure);
}

}  // namespace
}  // namespace systole::pjrt
