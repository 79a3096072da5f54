#include "operate/run/xla_machine.h"
#include "ground/base/document.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "ground/pjrt/testing/vendors_plugin.h"
#include "operate/run/executable_folder.h"
#include "operate/run/plan_run.h"

namespace systole {
namespace {

using pjrt::plugin;  // the plugin of NEEDS

Catalog builtin() { return Catalog::read(builtin_catalog_files()).value(); }

// A name that contains another chip's name is a different chip.
TEST(XlaMachine, chips_are_known_by_their_whole_names) {
  const Catalog catalog = builtin();
  const auto entry = [&](const char* backend, const char* kind) {
    return catalog_entry_of_xla(backend, kind, catalog);
  };
  EXPECT_EQ(entry("gpu", "NVIDIA B200").value(), "b200");
  EXPECT_EQ(entry("gpu", "NVIDIA H200").value(), "h200");
  EXPECT_EQ(entry("gpu", "NVIDIA A100-SXM4-40GB").value(), "a100-40gb");
  EXPECT_EQ(entry("gpu", "NVIDIA A100-SXM4-80GB").value(), "a100");
  EXPECT_EQ(entry("gpu", "NVIDIA H100 80GB HBM3").value(), "h100");
  EXPECT_EQ(entry("tpu", "TPU v5 lite").value(), "v5e");
  EXPECT_EQ(entry("tpu", "TPU v5").value(), "v5p");
  EXPECT_EQ(entry("tpu", "TPU7x").value(), "tpu7x");
  for (const char* unknown : {"NVIDIA GB200", "NVIDIA H100 PCIe", "NVIDIA H100", "B200", ""}) {
    const Result<std::string> found = entry("gpu", unknown);
    ASSERT_FALSE(found.ok()) << unknown << " is taken for " << *found;
    EXPECT_NE(found.error().hint.find("docs/guide/gpu-and-tpu.md"), std::string::npos);
  }
  EXPECT_FALSE(entry("tpu", "NVIDIA B200").ok());
  EXPECT_TRUE(catalog.find(entry("xla-cpu", "cpu").value()).ok());
}

// Every name that libtpu gives its chips is in the catalog.
TEST(XlaMachine, every_chip_of_libtpu_has_its_entry) {
  NEEDS("tpu");
  const Catalog catalog = builtin();
  for (const auto& [slice, entry] :
       {std::pair("v4:2x2x1", "v4"), std::pair("v5e:2x2", "v5e"), std::pair("v5p:2x2x1", "v5p"),
        std::pair("v6e:2x2", "v6e"), std::pair("tpu7x:2x2x1", "tpu7x")}) {
    const auto devices = pjrt::Topology::create(*it, slice).value().devices().value();
    ASSERT_FALSE(devices.empty());
    const Result<std::string> found = catalog_entry_of_xla("tpu", devices[0].kind, catalog);
    ASSERT_TRUE(found.ok()) << devices[0].kind;
    EXPECT_EQ(*found, entry) << devices[0].kind;
  }
}

// A device with two compiled functions, by the hashes of their executables.
class TwoExecutables : public Device {
 public:
  explicit TwoExecutables(std::string second) : second_(std::move(second)) {}
  std::map<std::string, std::string> executables() const override { return {{"first", "1"}, {"second", second_}}; }
  const Target& target() const override { return target_; }
  Bytes workspace(const Graph&, const GraphNode&) const override { return {}; }
  Result<std::unique_ptr<Memory>> allocate(Bytes) override { return none(); }
  DeviceEvent copy_in(Memory&, const SlotAddress&, std::span<const std::byte>) override { return {}; }
  DeviceEvent copy_out(Memory&, const SlotAddress&, std::span<std::byte>) override { return {}; }
  Result<std::unique_ptr<Executable>> compile(const Function&) override { return none(); }
  Result<std::unique_ptr<Call>> bind(const Executable&, Memory&, const Addresses&) override { return none(); }
  DeviceEvent run(Call&, WorkCounters&) override { return {}; }

 private:
  static Error none() { return error(ErrorKind::unsupported, "it does nothing"); }
  Target target_;
  std::string second_;
};

// A function that the checkpoint does not know is accepted; a changed one is refused by its name.
TEST(XlaMachine, exactness_ends_where_an_executable_is_another) {
  const Node before = Node::map({{"second", "2"}, {"third", "3"}});
  EXPECT_TRUE(check_executables(nullptr, TwoExecutables("4")).ok());
  EXPECT_TRUE(check_executables(&before, TwoExecutables("2")).ok());
  const Status other = check_executables(&before, TwoExecutables("4"));
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("exactness ends here: what 'second' had been compiled to is no longer kept"),
            std::string::npos)
      << other.error().message;
  EXPECT_NE(other.error().hint.find("train.exact=false"), std::string::npos);
}

// An XLA device that reports what it has compiled.
class Compiles : public XlaDevice {
 public:
  const std::vector<XlaCompiled>& compiled() const override { return compiled_; }
  const std::string& kind() const override { return name_; }
  const std::string& numerics() const override { return name_; }
  const pjrt::CompilerFlags& flags() const override { return flags_; }
  const Target& target() const override { return target_; }
  Bytes workspace(const Graph&, const GraphNode&) const override { return {}; }
  Result<std::unique_ptr<Memory>> allocate(Bytes) override { return none(); }
  DeviceEvent copy_in(Memory&, const SlotAddress&, std::span<const std::byte>) override { return {}; }
  DeviceEvent copy_out(Memory&, const SlotAddress&, std::span<std::byte>) override { return {}; }
  Result<std::unique_ptr<Executable>> compile(const Function&) override { return none(); }
  Result<std::unique_ptr<Call>> bind(const Executable&, Memory&, const Addresses&) override { return none(); }
  DeviceEvent run(Call&, WorkCounters&) override { return {}; }

  void made(const std::string& function, const std::string& again, bool kept_before = false) {
    XlaCompiled one;
    one.function = function;
    one.time = Seconds(60.0);
    one.kept_before = kept_before;
    one.again = again;
    compiled_.push_back(std::move(one));
  }

 private:
  static Error none() { return error(ErrorKind::unsupported, "it does nothing"); }
  std::string name_;
  Target target_;
  pjrt::CompilerFlags flags_;
  std::vector<XlaCompiled> compiled_;
};

// Compilation before the first step is startup; each recompilation is reported once, up to a limit.
TEST(CompileWatch, names_what_changed_when_a_function_is_compiled_anew) {
  Compiles device;
  device.made("step", "");
  device.made("evaluate", "", true);
  EXPECT_EQ(compile_note(device)->text, "1 compiled, 1 loaded");
  EXPECT_EQ(compile_note(device)->took, Seconds(120.0));
  CompileWatch watch(device);
  EXPECT_TRUE(watch.news().empty());
  device.made("step", "dim 0 (batch) of input 'tokens' is 6 and was 5");
  device.made("other", "");
  const std::vector<Note> first = watch.news();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].level, "warning");
  EXPECT_EQ(first[0].text, "'step' was compiled anew after it had run: dim 0 (batch) of input 'tokens' is 6 and was 5");
  EXPECT_EQ(first[0].took, Seconds(60.0));
  EXPECT_TRUE(watch.news().empty());
  for (int again = 0; again < 5; ++again) device.made("step", "dim 0 (batch) of input 'tokens' is 5 and was 6", true);
  const std::vector<Note> rest = watch.news();
  ASSERT_EQ(rest.size(), CompileWatch::kMost - 1);
  EXPECT_EQ(rest[0].text, "'step' was loaded anew after it had run: dim 0 (batch) of input 'tokens' is 5 and was 6");
  EXPECT_TRUE(rest[1].text.ends_with("; no more of this is told")) << rest[1].text;
  EXPECT_TRUE(CompileWatch(TwoExecutables("2")).news().empty());
}

TEST(ExecutableFolder, without_a_place_nothing_is_kept) {
  ExecutableFolder nowhere("");
  nowhere.keep("key", "bytes");
  EXPECT_FALSE(nowhere.find("key"));
  EXPECT_EQ(executable_folder("/c", "/h"), "/c/systole/xla");
  EXPECT_EQ(executable_folder(nullptr, "/h"), "/h/.cache/systole/xla");
  EXPECT_EQ(executable_folder("", ""), "");
}

TEST(ExecutableFolder, makes_its_folder) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / fmt::format("executable-folder-{}", getpid());
  ExecutableFolder folder((root / "a/b").string());
  EXPECT_FALSE(folder.find("key"));
  folder.keep("key", std::string("by\0tes", 6));
  EXPECT_EQ(folder.find("key"), std::string("by\0tes", 6));
  EXPECT_EQ(ExecutableFolder((root / "a/b").string()).find("key"), std::string("by\0tes", 6));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace systole
