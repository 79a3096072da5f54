#pragma once
// Launches small programs in a temporary folder. Everything happens in the test's thread: output of ranks arrives in
// `on_line`, which may kill ranks or request a stop.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ground/base/testing/places.h"
#include "ground/process/capture.h"
#include "operate/launch/launch.h"

namespace systole {

// Whether a process runs and is not a zombie.
inline bool runs(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return false;
  const std::size_t after = text.rfind(')');
  return after != std::string::npos && text.substr(after + 2, 1) != "Z";
}

// Waits a bounded time.
inline bool ends_soon(pid_t pid) {
  for (int i = 0; i < 2000 && runs(pid); ++i) ::usleep(10'000);
  return !runs(pid);
}

class LaunchFixture : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "systole-launch-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    options_.log_folder = folder_;
    options_.heartbeat = Seconds(5.0);
    options_.tell = [this](std::string_view sentence) { told_ += std::string(sentence) + "\n"; };
    options_.line = [this](int rank, std::string_view line) {
      said_ += fmt::format("[rank {}] {}\n", rank, line);
      if (on_line) on_line(rank, std::string(line));
    };
    options_.stop = [this] { return stop_; };
  }
  void TearDown() override {
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child, or a zombie, is left";
    EXPECT_EQ(errno, ECHILD);
    std::filesystem::remove_all(folder_);
  }

  static std::string probe() { return std::string(SYSTOLE_BINARY_DIR) + "/src/operate/launch/launch_probe"; }
  // `n` ranks, or least to most, of a shell script that acts as a user's program.
  void script(std::string text, int least, int most = 0) {
    options_.command.argv = {"sh", "-c", std::move(text)};
    options_.membership.own_ranks = false;
    ranks(least, most);
  }
  // Our own ranks, as in launch_probe.
  void own(std::string what, int least, int most = 0) {
    options_.command.argv = {probe(), "rank", std::move(what)};
    ranks(least, most);
  }
  void ranks(int least, int most) {
    options_.membership.min_ranks = least;
    options_.slots = options_.membership.max_ranks = std::max(least, most);
    options_.membership.settle_time = Seconds(0.05);
    options_.membership.notice = Seconds(20.0);
  }
  LaunchOutcome run() {
    const Result<LaunchOutcome> outcome = launch(options_);
    if (!outcome.ok()) ADD_FAILURE() << to_string(outcome.error());
    return outcome.ok() ? *outcome : LaunchOutcome{-1, ""};
  }
  std::string log(std::uint64_t generation, int rank) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + LocalRanks::log_name(generation, rank)).rdbuf();
    return text.str();
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  std::string folder_, told_, said_;
  LaunchOptions options_;
  LaunchStop stop_;
  std::function<void(int, const std::string&)> on_line;
};

// "up PID GENERATION", printed by a rank of launch_probe.
struct RankUp {
  pid_t pid = -1;
  std::uint64_t generation = 0;
};
inline std::optional<RankUp> up_of(const std::string& line) {
  std::istringstream in(line);
  std::string word;
  RankUp up;
  if (in >> word >> up.pid >> up.generation && word == "up") return up;
  return std::nullopt;
}

}  // namespace systole
