#include "operate/doctor/xla.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

XlaPluginFacts libtpu() {
  XlaPluginFacts plugin;
  plugin.name = "tpu";
  plugin.purpose = "programs for TPUs can be compiled";
  plugin.get = "tools/xla-plugins tpu";
  plugin.there = true;
  plugin.path = "/p/tpu/libtpu/libtpu.so";
  plugin.package = "libtpu 0.0.51";
  plugin.api = "0.116";
  plugin.stablehlo = "1.23.0";
  plugin.did = "compiled two ops for v5e:2x2";
  plugin.time = Seconds(0.41);
  return plugin;
}

Finding judged(const XlaPluginFacts& plugin) { return examine_xla({"/p", {plugin}, {}}).at(1); }

TEST(DoctorXla, APluginThatWorks) {
  const Finding finding = judged(libtpu());
  EXPECT_EQ(finding.verdict, Verdict::ok);
  EXPECT_EQ(finding.text,
            "libtpu 0.0.51, PJRT API 0.116, StableHLO up to 1.23.0; compiled two ops for v5e:2x2 in 0.41 s");
  EXPECT_EQ(finding.hint, "");
}

TEST(DoctorXla, OneThatIsMissingComesWithItsCommand) {
  XlaPluginFacts plugin = libtpu();
  plugin.there = false;
  const Finding finding = judged(plugin);
  EXPECT_EQ(finding.verdict, Verdict::warn);
  EXPECT_EQ(finding.text, "not there; with it, programs for TPUs can be compiled");
  EXPECT_EQ(finding.hint, "tools/xla-plugins tpu");
}

TEST(DoctorXla, OneThatIsBrokenOrNewer) {
  XlaPluginFacts plugin = libtpu();
  plugin.problem = "killed by SIGABRT: Check failed: it is Sunday";
  EXPECT_EQ(judged(plugin).verdict, Verdict::fail);
  EXPECT_EQ(judged(plugin).text, "libtpu 0.0.51 does not work: killed by SIGABRT: Check failed: it is Sunday");
  EXPECT_EQ(judged(plugin).hint, "remove /p/tpu/libtpu/libtpu.so and get it again: tools/xla-plugins tpu");
  plugin = libtpu();
  plugin.warning = "it is newer than any that was tried";
  EXPECT_EQ(judged(plugin).verdict, Verdict::warn);
  EXPECT_NE(judged(plugin).text.find("newer than any"), std::string::npos);
}

TEST(DoctorXla, DevicesAndTheFolder) {
  EXPECT_EQ(examine_xla({"/p", {}, {}})[0].text, "/p");
  EXPECT_NE(examine_xla({"/p", {}, {}})[1].text.find("compiled, not run"), std::string::npos);
  EXPECT_EQ(examine_xla({"/p", {}, {"/dev/nvidia0", "/dev/nvidia1"}})[1].text, "/dev/nvidia0, /dev/nvidia1");
}

TEST(DoctorXla, LastWordsAreTheFailureAndNotTheChat) {
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words("a\nb\n\n"), "b");
  EXPECT_EQ(last_words("W1: hello\nF2: Check failed: x == y\n*** SIGABRT ***\n    @ 0x12\n"),
            "F2: Check failed: x == y");
  EXPECT_EQ(last_words(std::string(1000, 'x')).size(), 300U);
}

}  // namespace
}  // namespace systole
