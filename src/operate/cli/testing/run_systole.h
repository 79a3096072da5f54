#pragma once
// For tests of the command line: runs the program of this build, in a temporary folder.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ground/base/testing/places.h"
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
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }

  // A file that only its owner may read.
  void write_secret(const std::string& name, const std::string& text) const {
    write(name, text);
    std::filesystem::permissions(folder_ / name,
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }

  Captured run(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), kSystole);
    return run_words(std::move(arguments), input, folder_);
  }
  // As a user other than root, whom permissions restrict.
  Captured run_as_user(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), kSystole);
    if (::geteuid() == 0)
      arguments.insert(arguments.begin(), {"setpriv", "--bounding-set", "-dac_override,-dac_read_search"});
    return run_words(std::move(arguments), "", folder_);
  }
  // A line of shell; $SYSTOLE is the program.
  Captured shell(const std::string& line) const {
    return run_words({"/bin/sh", "-c", "SYSTOLE='" + std::string(kSystole) + "'; " + line}, "", folder_);
  }
  // In another folder than its own.
  Captured run_in(const std::filesystem::path& folder, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), kSystole);
    return run_words(std::move(arguments), "", folder);
  }

 private:
  static constexpr const char* kSystole = SYSTOLE_BINARY_DIR "/src/operate/cli/systole";

  Captured run_words(std::vector<std::string> words, const std::string& input,
                     const std::filesystem::path& folder) const {
    Command command;
    command.argv = std::move(words);
    command.cwd = folder.string();
    command.env = {{"NO_COLOR", "1"}, {"HOME", folder_.string()}, {"XDG_CONFIG_HOME", std::nullopt}};
    CaptureOptions options;
    options.input = input;
    options.timeout = Seconds(120.0);
    return run_captured(command, options).value();
  }

  std::filesystem::path folder_;
};

}  // namespace systole::cli
