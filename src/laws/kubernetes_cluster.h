#pragma once
// A real Kubernetes on loopback for a test suite (tools/kube), with nodes that run their pods (tools/kubelet).

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "ground/base/document.h"
#include "ground/base/testing/places.h"
#include "ground/base/testing/waits.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "ground/process/spawn.h"

namespace systole {

inline constexpr const char* kSystole = SYSTOLE_BINARY_DIR "/src/operate/cli/systole";
inline constexpr const char* kKube = SYSTOLE_SOURCE_DIR "/tools/kube";
inline constexpr const char* kKubelet = SYSTOLE_SOURCE_DIR "/tools/kubelet";

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Kubernetes : public testing::Test {
 protected:
  struct Kubelet {
    Process process;
    explicit Kubelet(const Command& command) : process(Process::start(command).value()) {}
    ~Kubelet() { process.stop(Seconds(10.0)); }
  };

  // Call in a suite's SetUpTestSuite: starts its own cluster. `addons`: "" or names.
  static void begin(const std::string& addons) {
    std::string name = (std::filesystem::temp_directory_path() / "systole-kubernetes-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    place_ = new std::filesystem::path(name);
    missing_ =
        ::geteuid() != 0 ? "a kubelet needs root" : shell(fmt::format("{} built {}", kKube, addons), *place_).err;
    if (!missing_.empty()) return;
    std::filesystem::permissions(name, std::filesystem::perms(0755));
    const Captured up = shell(fmt::format("{} up cluster {}", kKube, addons), *place_);
    if (up.exit.code != 0) missing_ = "its cluster did not come up";
    ASSERT_EQ(up.out + up.err, "");
  }
  static void TearDownTestSuite() {
    kubelets_.clear();  // asks each to end, and waits
    if (std::filesystem::exists(*place_ / "cluster")) shell(std::string(kKube) + " down cluster", *place_);
    std::filesystem::remove_all(*place_);
    delete place_;
  }
  // Adds nodes that run pods, with this build's program in place of an image's.
  static void add_nodes(const std::vector<std::string>& names, const std::string& capacity = "cpu=1,memory=1Gi",
                        const std::vector<std::string>& more = {}) {
    if (!missing_.empty()) return;
    Command command;
    command.argv = {kKubelet,     "cluster",
                    "--label",    "systole.test/pods=run",
                    "--capacity", capacity,
                    "--life",     "900",
                    "--bind",     std::string(kSystole) + ":/usr/local/bin/systole"};
    command.argv.insert(command.argv.end(), names.begin(), names.end());
    command.argv.insert(command.argv.end(), more.begin(), more.end());
    command.cwd = place_->string();
    command.out = command.err = ChildStream::append((*place_ / "kubelet.log").string());
    kubelets_.push_back(std::make_unique<Kubelet>(command));
  }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
    folder_ = *place_ / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directory(folder_);
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  // A line of shell that uses this cluster's API server.
  Captured run(const std::string& line) const { return shell(". ../cluster/env; " + line, folder_); }
  std::string out(const std::string& line) const {
    const Captured said = run(line);
    EXPECT_EQ(said.exit.code, 0) << line << "\n" << said.err;
    return said.out;
  }

  // Runs systole in this test's folder; expects exit code `code`.
  std::string systole(const std::string& words, int code = 0, const std::string& folder = ".") const {
    const Captured ran = run("cd " + folder + "; \"$SYSTOLE\" " + words);
    EXPECT_EQ(ran.exit.code, code) << words << "\n" << ran.out << ran.err;
    return ran.out + ran.err;
  }
  // A field of a submitted run in the output of `runs`.
  std::string told(const std::string& name, const char* what = "state") const {
    const Captured ran = run("\"$SYSTOLE\" --json runs");
    const Node document = parse_json(ran.out, "stdout").value();
    for (const Node& node : document.find("submitted")->items())
      if (node.find("run")->text() == name) return node.find(what)->text();
    return "none";
  }
  bool becomes(const std::string& name, const std::string& wanted, double seconds = 60) const {
    return waits([&] { return told(name) == wanted; }, seconds);
  }
  bool writes(const std::string& name, const std::string& part) const {
    return waits([&] { return has(run("\"$SYSTOLE\" logs --all " + name).out, part); });
  }

  static Captured shell(const std::string& line, const std::filesystem::path& folder) {
    Command command;
    command.argv = {"/bin/bash", "-c", line};
    command.cwd = folder.string();
    command.env = {{"SYSTOLE", kSystole},
                   {"NO_COLOR", "1"},
                   {"LIFE", "900"},  // even if this process dies
                   {"PORT", std::to_string(26440 + ::getpid() % 200 * 20)}};
    CaptureOptions options;
    options.timeout = Seconds(180.0);
    return run_captured(command, options).value();
  }

  inline static std::filesystem::path* place_ = nullptr;
  inline static std::string missing_;
  inline static std::vector<std::unique_ptr<Kubelet>> kubelets_;
  std::filesystem::path folder_;
};

}  // namespace systole
