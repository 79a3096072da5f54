// A query changes nothing: no file here, none on the machines, no object of a cluster. What it reports counts all the
// same.
#include "operate/cluster/run_status.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "ground/base/text_file.h"
#include "operate/targets/kubernetes/kube_objects.h"
#include "operate/targets/kubernetes/kubernetes.h"
#include "operate/targets/kubernetes/testing/kube_stub.h"
#include "operate/targets/slurm/slurm.h"
#include "operate/targets/ssh/ssh.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

struct RunStatuses : testing::Test {
  RunStatuses() : path_(::getenv("PATH")) {
    std::string name = (fs::temp_directory_path() / "systole-status-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    ::setenv("PATH", (folder_ + "/bin:" + path_).c_str(), 1);
    record_.run = "line";
    record_.submission = "00112233aabbccdd";
    record_.id = "00112233";
    record_.place = folder_ + "/here/line";
    write("here/line/record.json", "{}");
  }
  ~RunStatuses() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + "/" + path).parent_path());
    write_text_file(folder_ + "/" + path, text).value();
  }
  void program(const std::string& name, const std::string& body) const {
    write("bin/" + name, "#!/bin/sh\n" + body + "\n");
    ::chmod((folder_ + "/bin/" + name).c_str(), 0755);
  }
  // All files by name, except the call logs of stand-in programs.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.is_regular_file() && entry.path().filename() != "asked")
        all[entry.path().string()] = read_text_file(entry.path().string()).value();
    return all;
  }
  std::string ledger() const {
    const Result<std::string> text = read_text_file(ledger_of(record_));
    return text.ok() ? *text : "";
  }
  std::string path_, folder_;
  Record record_;
};

TEST_F(RunStatuses, of_a_plain_machine) {
  program("ssh", "for line; do :; done\nHOME='" + folder_ + "/there' exec sh -c \"$line\"");
  record_.target = "ssh";
  record_.where["hosts"] = "- there there\n";
  const std::string mine = "there/.systole/runs/line/there/";
  write(mine + "sent", record_.submission + " 00112233 aaaa\n");
  write(mine + "00112233.log", "step 1\n");
  write(mine + "ledger", "began 00112233 0 1000 1\nended 00112233 0 1100 76\nbegan 00112233 1 1200 1\n");
  const auto before = files();
  const std::unique_ptr<ClusterClient> ssh = open_ssh().value();
  const RunStatus status = query(*ssh, record_).value();
  EXPECT_EQ(files(), before);
  EXPECT_EQ(status.overall().state, RunState::failed);
  EXPECT_EQ(status.overall().reason, "there has lost its agent");
  ASSERT_EQ(status.allocations.size(), 2u);
  EXPECT_EQ(*status.allocations[0].ended_at, 1100);
  EXPECT_EQ(status.allocations[1].code, 137) << "nobody there could write its end";
  EXPECT_EQ(query(*ssh, record_).value().allocations, status.allocations);
  EXPECT_EQ(files(), before);
  const RunStatus settled = settle(*ssh, record_).value();
  EXPECT_EQ(settled.allocations, status.allocations);
  EXPECT_EQ(ledger(), status.told) << "which the record's ledger lacked";
  EXPECT_EQ(query(*ssh, record_).value().told, "");
  auto after = files();
  after.erase(ledger_of(record_));
  EXPECT_EQ(after, before) << "nothing is written there";
  // Its target can no longer be queried.
  fs::remove(ledger_of(record_));
  EXPECT_EQ(ledger_status(record_, status.told).allocations, status.allocations);
}

TEST_F(RunStatuses, of_slurm) {
  record_.target = "slurm";
  for (const char* name : {"sbatch", "scancel", "sinfo", "scontrol"})
    program(name, fmt::format("echo {} >>'{}/changed'", name, folder_));
  std::string list;
  for (const char c : "00112233|NODE_FAIL|None|0|systole/run=line/00112233aabbccdd|900|1100|n0|\n")
    if (c != '\0') list += c == '|' ? '\x1f' : c;
  write("list", list);
  program("squeue", fmt::format("cat '{}/list'", folder_));
  write("here/line/ledger", "began 00112233 0 1000 2\n");
  const auto before = files();
  const std::unique_ptr<ClusterClient> slurm = open_slurm().value();
  const RunStatus status = query(*slurm, record_).value();
  EXPECT_EQ(status.overall().state, RunState::failed);
  EXPECT_EQ(*status.allocations.at(0).ended_at, 1100) << "as Slurm says";
  EXPECT_EQ(status.told, "") << "its jobs write to their ledger themselves";
  settle(*slurm, record_).value();
  EXPECT_EQ(files(), before);
}

constexpr const char* kJobs = "/apis/batch/v1/namespaces/team/jobs";
constexpr const char* kPods = "/api/v1/namespaces/team/pods";

struct KubeRunStatuses : RunStatuses {
  KubeRunStatuses() {
    record_.target = "kubernetes";
    record_.where = cluster_->where();
    job("{}", false);
    record_.id = query(*cluster_, record_).value().overall().id;
  }
  std::string labels() const {
    return "labels: { app.kubernetes.io/managed-by: systole, systole/run: line, systole/submission: " +
           record_.submission + " }";
  }
  void job(const std::string& annotations, bool suspended) {
    stub_.put(
        std::string(kJobs) + "/line",
        fmt::format("apiVersion: batch/v1\nkind: Job\nmetadata: {{ name: line, uid: 01234567, namespace: team, {}, "
                    "annotations: {} }}\nspec: {{ parallelism: 1, suspend: {}, template: {{ spec: {{ containers: "
                    "[{{ name: a, image: x }}] }} }} }}\n",
                    labels(), annotations, suspended));
  }
  void pod(const std::string& name, const std::string& state) {
    stub_.put(
        std::string(kPods) + "/" + name,
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{ name: {}, namespace: team, {} }}\nspec: {{ nodeName: "
                    "n0 }}\nstatus: {{ phase: Running, containerStatuses: [{{ name: a, state: {} }}] }}\n",
                    name, labels(), state));
  }
  int changes() {  // requests to the cluster that change something
    int n = 0;
    for (const std::string& one : stub_.asked()) n += !one.starts_with("GET ");
    return n;
  }
  KubeStub stub_;
  FakeClock clock_;
  std::unique_ptr<ClusterClient> cluster_ = kubernetes_by(stub_.api(clock_), "team");
};

TEST_F(KubeRunStatuses, a_stopped_run_is_noted_by_settle_and_not_by_query) {
  pod("line-0", "{ running: { startedAt: '2026-01-01T00:00:10Z' } }");
  EXPECT_EQ(query(*cluster_, record_).value().overall().state, RunState::running);
  EXPECT_EQ(changes(), 0);
  EXPECT_EQ(ledger(), "");
  ASSERT_TRUE(cluster_->stop(record_, false).ok());
  pod("line-0",
      "{ terminated: { exitCode: 75, startedAt: '2026-01-01T00:00:10Z', finishedAt: '2026-01-01T00:01:10Z' } }");
  stub_.take_away(std::string(kPods) + "/line-0");
  const int asked = changes();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(query(*cluster_, record_).value().overall().state, RunState::stopped);
  EXPECT_EQ(changes(), asked);
  EXPECT_EQ(ledger(), "");
  EXPECT_EQ(settle(*cluster_, record_).value().overall().reason, "saved");
  EXPECT_EQ(changes(), asked + 1) << "its end, where the run is";
  settle(*cluster_, record_).value();
  EXPECT_EQ(changes(), asked + 1) << "once";
}

TEST_F(KubeRunStatuses, what_was_told_of_a_pod_counts_when_the_pod_is_gone) {
  pod("line-0", "{ running: { startedAt: '2026-01-01T00:00:10Z' } }");
  const std::vector<Record> records{record_};
  std::vector<std::string> told{query(*cluster_, records).value()[0].told};
  EXPECT_EQ(told[0], "began " + record_.id + " 0 1767225610 1\n");
  stub_.take_away(std::string(kPods) + "/line-0");
  pod("line-1", "{ running: { startedAt: '2026-01-01T00:01:10Z' } }");
  EXPECT_EQ(query(*cluster_, records).value()[0].allocations.size(), 1u);
  for (int i = 0; i < 2; ++i) {
    const RunStatus status = std::move(query(*cluster_, records, told).value()[0]);
    ASSERT_EQ(status.allocations.size(), 2u);
    EXPECT_EQ(allocated_seconds(status.allocations, 1767225680), 70);
    told[0] = status.told;
  }
  // Another client, whose ledger has only the second interval, settles it; the first one is still known from before.
  settle(*cluster_, record_).value();
  EXPECT_EQ(ledger(), "began " + record_.id + " 0 1767225670 1\n");
  const RunStatus status = std::move(query(*cluster_, records, told).value()[0]);
  EXPECT_EQ(status.allocations.size(), 2u);
  EXPECT_EQ(allocated_seconds(status.allocations, 1767225680), 70);
}

}  // namespace
}  // namespace systole
