// `systole doctor devices`, and `run --device`, with a misbehaving fake plugin in place of libtpu.

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/pjrt/places.h"
#include "operate/cli/testing/fake_plugin.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

class DevicesCommand : public FakePluginTest {
 protected:
  DevicesCommand() {
    install();
    systole().write("job.yaml", kWorkload);
  }
  Captured with(const std::string& fake, const std::string& words) const {
    return systole().shell("SYSTOLE_XLA_PLUGINS=plugins FAKE_PJRT='" + fake + "' $SYSTOLE " + words);
  }
};

TEST_F(DevicesCommand, none_is_a_line_for_each_runtime) {
  const Captured seen = with("aborts", "doctor devices");
  EXPECT_EQ(seen.exit.code, 0) << seen.out << seen.err;
  expect_part(seen.out,
              "warn  tpu            none: its process ended: killed by SIGABRT: F0000 fake_plugin.cc:1] Check");
  expect_part(seen.out, "warn  gpu            its plugin is not there\n        hint: tools/xla-plugins gpu\n");
  const Captured asked = with("hangs", "doctor devices --device tpu --timeout 0.5 --ranks 2");
  EXPECT_EQ(asked.exit.code, 1) << asked.out;
  expect_part(asked.out, "fail  tpu            none: its process said nothing for 0.5 s");
  expect_part(asked.out, "fail  rank 1         none: tpu sees 0 devices, and there are 2 ranks");
  EXPECT_EQ(with("", "doctor devices --chip v99").exit.code, 2);
}

// Whatever the plugin does when opened, a run ends at once with one sentence, and leaves nothing.
TEST_F(DevicesCommand, a_run_without_the_chip_is_one_sentence) {
  const auto refused = [&](const std::string& fake, const std::string& why) {
    const Captured run = with(fake, "run job.yaml --device tpu --folder out");
    EXPECT_EQ(run.exit.code, 3) << fake << run.err;
    expect_part(run.err, "error: --device tpu: ");
    expect_part(run.err, why);
    expect_part(run.err, "hint: ");
    EXPECT_FALSE(std::filesystem::exists(systole().folder() / "out"));
  };
  refused("aborts", "its process ended: killed by SIGABRT: F0000 fake_plugin.cc:1] Check failed: it is Sunday");
  refused("exits", "its process ended: exit code 7");
  refused("refuses", "its lamp is off");
  refused("major=1", "another major version");
  systole().write("plugins/tpu/libtpu/libtpu.so", "half");
  refused("", "it is no shared library");
  const Captured absent = with("", "run job.yaml --device gpu --folder out");
  EXPECT_EQ(absent.exit.code, 3) << absent.err;
  expect_part(absent.err, "hint: tools/xla-plugins gpu");
}

// XLA on this machine's cores makes as many devices as requested.
TEST(XlaPluginCpu, DoctorSeesDevicesPerRank) {
  const std::string folder = pjrt::plugins_folder();
  if (!pjrt::find_plugin("cpu", folder).ok()) GTEST_SKIP() << "no plugin: tools/xla-plugins cpu";
  const SystoleRunner systole;
  const std::string look =
      "ASAN_OPTIONS=detect_leaks=0 $SYSTOLE doctor devices --device xla-cpu --folder '" + folder + "' --ranks 3";
  const Captured seen = systole.shell(look);
  EXPECT_EQ(seen.exit.code, 0) << seen.out << seen.err;
  expect_part(seen.out, "ok    xla-cpu        3 × cpu");
  expect_part(seen.out, "ok    rank 2         xla-cpu 2: cpu\n");
  const Captured wrong = systole.shell(look + " --chip v5e");
  EXPECT_EQ(wrong.exit.code, 1) << wrong.out;
  expect_part(wrong.out, "fail  rank 0         xla-cpu 0: cpu, the wrong kind: v5e is wanted");
}

}  // namespace
}  // namespace systole::cli
