#pragma once
// For tests of commands that use XLA's plugins: a fake plugin in libtpu's place, which does what $FAKE_PJRT says.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "ground/base/testing/places.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {

class FakePluginTest : public testing::Test {
 protected:
  // Installs it in libtpu's place, in the folder `plugins`.
  void install() const {
    const std::filesystem::path place = systole_.folder() / "plugins/tpu/libtpu";
    std::filesystem::create_directories(place);
    std::filesystem::copy_file(SYSTOLE_BINARY_DIR "/src/ground/pjrt/libpjrt_fake_plugin.so", place / "libtpu.so");
    systole_.write("plugins/tpu/installed.txt", "libtpu==0.0.51 --hash=sha256:00\n");
  }
  const SystoleRunner& systole() const { return systole_; }

 private:
  SystoleRunner systole_;
};

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

}  // namespace systole::cli
