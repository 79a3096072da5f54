#pragma once
// For the tests of the command line: runs the program that was built beside them, in a folder of its own.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ground/process/capture.h"

namespace systole::cli {

class SystoleRunner {
 public:
  SystoleRunner() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-cli-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr, "no temporary folder");
    folder_ = name;
  }
  ~SystoleRunner() { std::filesystem::remove_all(folder_); }
  SystoleRunner(const SystoleRunner&) = delete;
  SystoleRunner& operator=(const SystoleRunner&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  Captured run(std::vector<std::string> arguments, const std::string& input = "") const {
    Command command;
    command.argv = {SYSTOLE_BINARY_DIR "/src/operate/cli/systole"};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.cwd = folder_.string();
    command.env = {{"NO_COLOR", "1"}, {"HOME", folder_.string()}, {"XDG_CONFIG_HOME", std::nullopt}};
    CaptureOptions options;
    options.input = input;
    options.timeout = Seconds(120.0);
    return run_captured(command, options).value();
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace systole::cli
