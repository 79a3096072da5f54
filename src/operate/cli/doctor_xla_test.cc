// `systole doctor xla` with a fake plugin in place of libtpu, and with the real one if installed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "ground/base/document.h"
#include "ground/pjrt/places.h"
#include "operate/cli/testing/fake_plugin.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

class DoctorXlaCommand : public FakePluginTest {
 protected:
  Captured look(const std::string& fake, const std::string& options = "") const {
    return systole().shell("FAKE_PJRT='" + fake + "' $SYSTOLE doctor xla --folder plugins " + options);
  }
};

void expect_line(const Captured& seen, const std::string& line) {
  EXPECT_NE(seen.out.find(line), std::string::npos) << line << "\nin\n" << seen.out << seen.err;
}

TEST_F(DoctorXlaCommand, says_what_is_missing_and_the_command_that_gets_it) {
  const Captured seen = look("");
  EXPECT_EQ(seen.exit.code, 0) << seen.out;
  expect_line(seen, "warn  tpu            not there; with it, programs are compiled for TPUs\n");
  expect_line(seen, "hint: tools/xla-plugins --folder plugins tpu\n");
  expect_line(seen, "hint: tools/xla-plugins --folder plugins gpu\n");
  const Captured home = systole().shell("env -u SYSTOLE_XLA_PLUGINS -u XDG_DATA_HOME $SYSTOLE doctor xla");
  expect_line(home, "hint: tools/xla-plugins tpu\n");
}

TEST_F(DoctorXlaCommand, a_plugin_that_works) {
  install();
  const Captured seen = look("v5e");
  EXPECT_EQ(seen.exit.code, 0) << seen.out;
  expect_line(seen, "ok    tpu            libtpu 0.0.51, PJRT API 0.116, StableHLO up to 1.23.0; compiled two ops for");
  const Captured newer = look("v5e minor=200");
  EXPECT_EQ(newer.exit.code, 0) << newer.out;
  expect_line(newer, "warn  tpu            libtpu 0.0.51, PJRT API 0.200");
  const Captured json = look("v5e", "--json");
  const Node document = parse_json(json.out, "stdout").value();
  EXPECT_EQ(document.find("findings")->items()[1].find("verdict")->text(), "ok") << json.out;
  EXPECT_EQ(document.find("systole")->text(), "doctor xla") << json.out;
}

TEST_F(DoctorXlaCommand, one_that_does_not_is_a_line_of_the_table) {
  install();
  const auto fails = [&](const std::string& fake, const std::string& text, const std::string& options = "") {
    const Captured seen = look(fake, options);
    EXPECT_EQ(seen.exit.code, 1) << fake << seen.out;
    expect_line(seen, "fail  tpu            libtpu 0.0.51 does not work: " + text);
    expect_line(seen, "and get it again: tools/xla-plugins --folder plugins tpu\n");
    EXPECT_EQ(seen.err, "") << fake;
  };
  fails("aborts", "its process ended: killed by SIGABRT: F0000 fake_plugin.cc:1] Check failed: it is Sunday");
  fails("exits", "its process ended: exit code 7");
  fails("hangs", "its process said nothing for 0.5 s", "--timeout 0.5");
  fails("refuses", "libtpu.so (API 0.116): start: UNAVAILABLE: its lamp is off");
  fails("major=1", "plugins/tpu/libtpu/libtpu.so speaks PJRT API 1.116, another major version than 0.116");
  fails("minor=50", "plugins/tpu/libtpu/libtpu.so speaks PJRT API 0.50, older than 0.72");
  fails("", "libtpu.so (API 0.116): make the topology v5e:2x2: NOT_FOUND: no topology 'v5e:2x2'");
  systole().write("plugins/tpu/libtpu/libtpu.so", "half");
  fails("", "plugins/tpu/libtpu/libtpu.so cannot be loaded: it is no shared library");
}

TEST_F(DoctorXlaCommand, the_machine_is_looked_at_without_it) {
  const Captured machine = systole().run({"doctor", "--json"});
  EXPECT_EQ(parse_json(machine.out, "stdout").value().find("systole")->text(), "doctor") << machine.out;
}

TEST(XlaPluginTpu, DoctorCompilesWithIt) {
  const std::string folder = pjrt::plugins_folder();
  if (!pjrt::find_plugin("tpu", folder).ok()) GTEST_SKIP() << "no plugin: tools/xla-plugins tpu";
  // Leaks of a vendor's library are not this program's fault, and would end a process under ASan with 1.
  const char* const before = std::getenv("ASAN_OPTIONS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("ASAN_OPTIONS", (kept + (kept.empty() ? "" : ":") + "detect_leaks=0").c_str(), 1);
  const Captured seen = SystoleRunner().run({"doctor", "xla", "--folder", folder});
  setenv("ASAN_OPTIONS", kept.c_str(), 1);
  EXPECT_EQ(seen.exit.code, 0) << seen.out;
  expect_line(seen, "ok    tpu            libtpu");
  expect_line(seen, "compiled two ops for v5e:2x2 in ");
}

}  // namespace
}  // namespace systole::cli
