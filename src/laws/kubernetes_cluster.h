#pragma once
// A real Kubernetes on loopback for a suite of tests (tools/kube), with nodes whose pods run (tools/kubelet).

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "ground/process/spawn.h"

namespace systole {

inline constexpr const char* kSystole = SYSTOLE_BINARY_DIR "/src/operate/cli/systole";
inline constexpr const char* kKube = SYSTOLE_SOURCE_DIR "/tools/kube";
inline constexpr const char* kKubelet = SYSTOLE_SOURCE_DIR "/tools/kubelet";
inline constexpr const char* kAddons = "jobset kueue training-operator trainer";

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Kubernetes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-kubernetes-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    place_ = new std::filesystem::path(name);
    const std::string addons = kAddons;
    missing_ = ::geteuid() != 0 ? "a kubelet needs root" : shell(std::string(kKube) + " built " + addons, *place_).err;
    if (!missing_.empty()) return;
    std::filesystem::permissions(name, std::filesystem::perms(0755));
    const Captured up = shell(std::string(kKube) + " up cluster " + addons, *place_);
    if (up.exit.code != 0) missing_ = "its cluster did not come up";
    ASSERT_EQ(up.out + up.err, "");
  }
  static void TearDownTestSuite() {
    if (std::filesystem::exists(*place_ / "cluster")) shell(std::string(kKube) + " down cluster", *place_);
    std::filesystem::remove_all(*place_);
    delete place_;
  }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
    folder_ = *place_ / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directory(folder_);
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  // A line of shell, to which this cluster's API server answers.
  Captured run(const std::string& line) const { return shell(". ../cluster/env; " + line, folder_); }
  std::string out(const std::string& line) const {
    const Captured said = run(line);
    EXPECT_EQ(said.exit.code, 0) << line << "\n" << said.err;
    return said.out;
  }

  static Captured shell(const std::string& line, const std::filesystem::path& folder) {
    Command command;
    command.argv = {"/bin/bash", "-c", line};
    command.cwd = folder.string();
    command.env = {{"SYSTOLE", kSystole},
                   {"NO_COLOR", "1"},
                   {"LIFE", "900"},  // whatever becomes of this process
                   {"PORT", std::to_string(26440 + ::getpid() % 200 * 20)}};
    CaptureOptions options;
    options.timeout = Seconds(180.0);
    return run_captured(command, options).value();
  }

  inline static std::filesystem::path* place_ = nullptr;
  inline static std::string missing_;
  std::filesystem::path folder_;
};

}  // namespace systole
