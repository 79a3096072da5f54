// Copies results from a claim, with a pod whose command runs locally.
#include "operate/targets/kubernetes/kube_bring.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "operate/targets/kubernetes/testing/kube_stub.h"

namespace systole {
namespace {

constexpr const char* kPods = "/api/v1/namespaces/team/pods";
constexpr const char* kResults = "/api/v1/namespaces/team/pods/line-results";

struct Bringing : testing::Test {
  Bringing() : folder_(made()) {
    for (const char* name : {"/claim/line", "/home", "/bin"}) std::filesystem::create_directories(folder_ + name);
    write_text_file(folder_ + "/claim/line/model", std::string(300'000, 'm')).value();
    record_.run = "line";
    stub_.on([this](const StubRequest& request, StubAnswer& answer) {
      if (request.method == "POST" && request.path == kPods) return create(request, answer);
      if (!request.path.ends_with("/line-results/log")) return false;
      answer.whole(200, log_);
      return true;
    });
  }
  ~Bringing() override { std::filesystem::remove_all(folder_); }
  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-bring-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  // The pod runs and ends before the reply, unless it hangs.
  bool create(const StubRequest& request, StubAnswer& answer) {
    Node pod = parse_json(request.body, "body").value();
    std::string state = "running: {}";
    if (!hangs_) {
      Command command;
      for (const Node& word : at(pod, {"spec", "containers"})->items()[0].find("command")->items())
        command.argv.push_back(word.text());
      command.env = {{"PATH", folder_ + "/bin:" + ::getenv("PATH")}};
      const Captured said = run_captured(command, {.limit = Bytes(8 << 20)}).value();
      log_.clear();
      std::istringstream lines(said.err + said.out);
      for (std::string line; std::getline(lines, line);) log_ += "2026-01-01T00:00:00Z " + line + "\n";
      state = fmt::format("terminated: {{ exitCode: {} }}", said.exit.code);
    }
    pod.set("status", parse_yaml(fmt::format("phase: Running\ncontainerStatuses: [{{ name: {}, state: {{ {} }} }}]\n",
                                             hangs_ ? "another" : "results", state),
                                 "test")
                          .value());
    stub_.put(kResults, pod);
    answer.whole(201, to_json(pod));
    return true;
  }
  // Replaces the pod's `tar`: it works, and then runs `body`.
  void tar_there(const std::string& body) {
    write_text_file(folder_ + "/bin/tar", "#!/bin/sh\n" + find_program("tar").value() + " \"$@\"\n" + body).value();
    ASSERT_EQ(::chmod((folder_ + "/bin/tar").c_str(), 0755), 0);
  }
  Status brought(const std::string& name = "line") {
    const Node pod = parse_yaml(fmt::format("metadata: {{ namespace: team }}\nspec: {{ containers: [{{ name: systole, "
                                            "image: x, volumeMounts: [{{ name: runs, mountPath: '{}/claim' }}] }}], "
                                            "volumes: [{{ name: runs, persistentVolumeClaim: {{ claimName: c }} }}] }}",
                                            folder_),
                                "test")
                         .value();
    return bring_folder(*api_, record_, pod, folder_ + "/claim/" + name, folder_ + "/home");
  }

  KubeStub stub_;
  FakeClock clock_;
  std::unique_ptr<KubeApi> api_ = stub_.api(clock_);
  std::string folder_, log_;
  Record record_;
  bool hangs_ = false;
};

TEST_F(Bringing, a_folder_comes_as_it_is) {
  const Status came = brought();
  ASSERT_TRUE(came.ok()) << to_string(came.error());
  EXPECT_EQ(read_text_file(folder_ + "/home/model").value(), std::string(300'000, 'm'));
  EXPECT_FALSE(stub_.find(kResults)) << "nothing is left there";
  EXPECT_EQ(brought("another").error().kind, ErrorKind::not_found);
}

TEST_F(Bringing, what_cannot_be_read_whole_is_said_in_the_words_of_tar) {
  tar_there("echo 'tar: ./optimizer: Cannot open: Permission denied' >&2; exit 2\n");
  const Status came = brought();
  ASSERT_FALSE(came.ok());
  EXPECT_EQ(came.error().kind, ErrorKind::io);
  EXPECT_NE(came.error().message.find("./optimizer: Cannot open"), std::string::npos) << came.error().message;
}

TEST_F(Bringing, a_warning_of_tar_is_none_of_the_bytes) {
  tar_there("echo 'tar: ./s: socket ignored' >&2\n");
  EXPECT_TRUE(brought().ok());
}

TEST_F(Bringing, a_pod_that_says_nothing_is_given_up) {
  hangs_ = true;
  const Status came = brought();
  ASSERT_FALSE(came.ok());
  EXPECT_EQ(came.error().kind, ErrorKind::busy);
  EXPECT_NE(came.error().message.find("in 15 minutes"), std::string::npos) << came.error().message;
  EXPECT_FALSE(stub_.find(kResults));
}

TEST_F(Bringing, a_pod_of_a_time_before_that_does_not_go_is_said) {
  stub_.put(kResults, "apiVersion: v1\nkind: Pod\nmetadata: { name: line-results, namespace: team }\n");
  stub_.on([](const StubRequest& request, StubAnswer& answer) {
    if (request.method != "DELETE") return false;
    answer.whole(200, R"({"kind":"Status","status":"Success"})");
    return true;
  });
  const Status came = brought();
  ASSERT_FALSE(came.ok());
  EXPECT_NE(came.error().hint.find("--force"), std::string::npos) << to_string(came.error());
}

}  // namespace
}  // namespace systole
