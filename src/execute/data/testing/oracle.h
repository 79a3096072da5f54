#pragma once
// For tests beside Python libraries that others wrote: tools/oracles/install puts them into the build folder.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ground/base/testing/places.h"
#include "ground/process/capture.h"

namespace systole {

class Oracle {
 public:
  // `section`: of tools/oracles/requirements.txt.
  explicit Oracle(std::string section) : section_(std::move(section)) {}

  // In the build folder.
  std::string folder() const { return SYSTOLE_BINARY_DIR "/oracles/" + section_; }
  // A program with its words, which finds the libraries.
  Captured run(std::vector<std::string> words) const {
    Command command;
    command.argv = std::move(words);
    command.env = {{"PYTHONPATH", folder()}};
    return run_captured(command, {.timeout = Seconds(600.0)}).value();
  }
  // A script of tools/oracles.
  Captured run_script(const std::string& name, std::vector<std::string> words) const {
    words.insert(words.begin(), {"python3", tool(name)});
    return run(std::move(words));
  }
  Captured install() const { return run({tool("install"), section_, folder()}); }

 private:
  static std::string tool(const std::string& name) { return SYSTOLE_SOURCE_DIR "/tools/oracles/" + name; }

  const std::string section_;
};

}  // namespace systole

// In a test: skips it where the libraries cannot be had here. Any other failure to install them fails it.
#define SKIP_WITHOUT(oracle)                                                     \
  const ::systole::Captured installed_##oracle = (oracle).install();             \
  if (installed_##oracle.exit.code == 3) GTEST_SKIP() << installed_##oracle.err; \
  ASSERT_TRUE(installed_##oracle.exit.ok()) << installed_##oracle.err
