// submit, stop, purge and recovery of runs, with an API server that refuses, forgets and disappears.
#include "operate/targets/kubernetes/kubernetes.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "ground/base/text_file.h"
#include "operate/cluster/allocation_ledger.h"
#include "operate/cluster/submit.h"
#include "operate/targets/kubernetes/kube_objects.h"
#include "operate/targets/kubernetes/testing/kube_stub.h"

namespace systole {
namespace {

constexpr const char* kJobs = "/apis/batch/v1/namespaces/team/jobs";
constexpr const char* kPods = "/api/v1/namespaces/team/pods";
constexpr const char* kObjects = R"(# line on kubernetes
apiVersion: v1
kind: ConfigMap
metadata: { name: line-files, namespace: team, labels: { app.kubernetes.io/managed-by: systole, systole/run: line } }
data: { start.sh: "#!/bin/sh\n" }
---
apiVersion: v1
kind: Service
metadata: { name: line, namespace: team, labels: { app.kubernetes.io/managed-by: systole, systole/run: line } }
spec: { clusterIP: None }
---
apiVersion: batch/v1
kind: Job
metadata:
  name: line
  namespace: team
  labels: { app.kubernetes.io/managed-by: systole, systole/run: line }
  annotations: { systole/workload-sha256: aaaa }
spec:
  parallelism: 2
  template:
    metadata: { labels: { app.kubernetes.io/managed-by: systole, systole/run: line } }
    spec:
      containers: [{ name: systole, image: x, resources: { requests: { cpu: "2" } } }]
      volumes:
        - { name: token, secret: { secretName: line-token } }
        - { name: runs, persistentVolumeClaim: { claimName: runs } }
)";

struct OnKubernetes : testing::Test {
  OnKubernetes() : folder_(made()), submissions_(Submissions::open(folder_ + "/runs").value()) {
    stub_.put("/api/v1/namespaces/team/persistentvolumeclaims/runs",
              "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: runs, namespace: team }\n");
    ask_.record.run = "line";
    ask_.record.target = "kubernetes";
    ask_.record.folder = "/runs/line";
    ask_.record.from = folder_;
    ask_.record.workload_sha256 = "aaaa";
    ask_.record.program_sha256 = std::string(64, 'b');
    ask_.record.where = cluster_->where();
    ask_.files = {{"job.yaml", kObjects}};
  }
  ~OnKubernetes() override { std::filesystem::remove_all(folder_); }
  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-kube-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  SubmissionContext context() { return {submissions_, audit_, clock_}; }
  Result<Submitted> submitted() { return submit(*cluster_, ask_, context()); }
  // Only the claim, which existed before.
  void expect_nothing_there() {
    EXPECT_EQ(stub_.paths(), std::vector<std::string>{"/api/v1/namespaces/team/persistentvolumeclaims/runs"});
  }
  // Refuses `method` on paths with this suffix, except dry runs, `times` times.
  void refuse(const std::string& method, const std::string& end, int status, const std::string& message, bool dry) {
    stub_.on([=](const StubRequest& request, StubAnswer& answer) {
      if (request.method != method || !request.path.ends_with(end) || request.asks("dryRun=All") != dry) return false;
      KubeStub::refuse(answer, status, status == 403 ? "Forbidden" : "Invalid", message);
      return true;
    });
  }
  Node pod(int index, const std::string& state, const std::string& submission) const {
    return parse_yaml(
               fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{ name: line-{0}-x, namespace: team, labels: {{ "
                           "app.kubernetes.io/managed-by: systole, systole/run: line, systole/submission: '{2}' }} "
                           "}}\nspec: {{ nodeName: n{0} }}\nstatus: {{ phase: Running, containerStatuses: [{{ name: "
                           "systole, state: {1} }}] }}\n",
                           index, state, submission),
               "test")
        .value();
  }
  void run_pods(const std::string& submission) {
    for (int i = 0; i < 2; ++i)
      stub_.put(fmt::format("{}/line-{}-x", kPods, i),
                pod(i, "{ running: { startedAt: '2026-01-01T00:00:10Z' } }", submission));
  }
  // A cluster that deletes the pods of a suspended Job; their ranks exit with `code`.
  void obey(int code, const std::string& submission) {
    stub_.on([=, this](const StubRequest& request, StubAnswer&) {
      if (request.method != "PATCH" || request.path != std::string(kJobs) + "/line" ||
          request.body.find("suspend") == std::string::npos)
        return false;
      for (int i = 0; i < 2; ++i) {
        const std::string path = fmt::format("{}/line-{}-x", kPods, i);
        stub_.put(path,
                  pod(i,
                      fmt::format("{{ terminated: {{ exitCode: {}, startedAt: '2026-01-01T00:00:10Z', finishedAt: "
                                  "'2026-01-01T00:01:10Z' }} }}",
                                  code),
                      submission));
        stub_.take_away(path);
      }
      return false;
    });
  }

  KubeStub stub_;
  FakeClock clock_;
  std::unique_ptr<ClusterClient> cluster_ = kubernetes_by(stub_.api(clock_), "team");
  std::string folder_;
  Submissions submissions_;
  Audit audit_{submissions_.path(), clock_};
  SubmitRequest ask_;
};

TEST_F(OnKubernetes, all_is_there_once_under_the_labels) {
  const Record record = submitted().value().record;
  EXPECT_TRUE(record.id.starts_with("line/")) << record.id;
  EXPECT_TRUE(submitted().value().was_there);
  const std::string job = std::string(kJobs) + "/line";
  EXPECT_EQ(text_at(*stub_.find(job), {"metadata", "labels", kSubmissionLabel}), record.submission);
  EXPECT_EQ(text_at(*stub_.find(job), {"spec", "template", "metadata", "labels", kSubmissionLabel}), record.submission);
  EXPECT_EQ(stub_.asked("PATCH " + job), 2) << "a dry run and one apply";
  EXPECT_TRUE(stub_.find("/api/v1/namespaces/team/secrets/line-token"));
  EXPECT_TRUE(stub_.find("/api/v1/namespaces/team/configmaps/line-submission"));
}

TEST_F(OnKubernetes, what_a_dry_run_refuses_leaves_nothing) {
  refuse("PATCH", "/jobs/line", 422, "spec.parallelism: too many", true);
  const Error refused = submitted().error();
  EXPECT_EQ(refused.kind, ErrorKind::invalid);
  EXPECT_NE(refused.message.find("spec.parallelism: too many"), std::string::npos);
  expect_nothing_there();
  EXPECT_FALSE(submissions_.find("line").value());
}

TEST_F(OnKubernetes, what_is_refused_half_way_is_taken_back) {
  refuse("PATCH", "/jobs/line", 422, "a webhook says no", false);
  EXPECT_EQ(submitted().error().kind, ErrorKind::invalid);
  expect_nothing_there();
}

TEST_F(OnKubernetes, a_job_whose_answer_was_lost_is_found_and_not_sent_again) {
  stub_.on(
      [&](const StubRequest& request, StubAnswer&) {
        if (request.method != "PATCH" || !request.path.ends_with("/jobs/line") || request.asks("dryRun=All"))
          return false;
        stub_.put(request.path, parse_json(request.body, "body").value());
        stub_.on([](const StubRequest& later, StubAnswer& answer) {
          if (later.method != "PATCH") return false;
          KubeStub::refuse(answer, 409, "Conflict", "somebody else has it");
          return true;
        });
        return true;  // and closes the connection
      },
      1);
  const Submitted done = submitted().value();
  EXPECT_TRUE(done.record.id.starts_with("line/"));
  EXPECT_TRUE(stub_.find("/api/v1/namespaces/team/configmaps/line-files"));
}

TEST_F(OnKubernetes, whoever_died_after_the_first_object_goes_on_with_it) {
  // The record before anything is sent, and the note that was created.
  Record half = ask_.record;
  half.submission = "0123456789abcdef";
  half.place = submissions_.place("line");
  half.submitted_at = clock_.timestamp();
  submissions_.write(half).value();
  stub_.put(
      "/api/v1/namespaces/team/configmaps/line-submission",
      fmt::format("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: line-submission, namespace: team, labels: {{ "
                  "systole/run: line, systole/submission: '{}' }} }}\n",
                  half.submission));
  EXPECT_EQ(submitted().value().record.submission, half.submission);
}

TEST_F(OnKubernetes, two_machines_at_once_are_one) {
  const Record first = submitted().value().record;
  Submissions elsewhere = Submissions::open(folder_ + "/elsewhere").value();
  Audit audit(elsewhere.path(), clock_);
  const Submitted second = submit(*cluster_, ask_, {elsewhere, audit, clock_}).value();
  EXPECT_TRUE(second.was_there) << "it is the same workload, and is taken over";
  EXPECT_EQ(second.record.submission, first.submission);
  // A submission with only a note still belongs to its submitter.
  stub_.take_away(std::string(kJobs) + "/line");
  ask_.record.workload_sha256 = "another";
  Submissions third = Submissions::open(folder_ + "/third").value();
  Audit third_audit(third.path(), clock_);
  EXPECT_EQ(submit(*cluster_, ask_, {third, third_audit, clock_}).error().kind, ErrorKind::busy);
  clock_.advance(Seconds(61));
  EXPECT_TRUE(submit(*cluster_, ask_, {third, third_audit, clock_}).ok()) << "it was left behind";
}

TEST_F(OnKubernetes, somebody_elses_service_of_that_name_is_left_alone) {
  stub_.put("/api/v1/namespaces/team/services/line",
            "apiVersion: v1\nkind: Service\nmetadata: { name: line, namespace: team }\n");
  EXPECT_EQ(submitted().error().kind, ErrorKind::exists);
  EXPECT_EQ(stub_.paths().size(), 2u);
}

TEST_F(OnKubernetes, quotas_claims_and_namespaces_are_looked_at_before_anything_is_made) {
  stub_.put("/api/v1/namespaces/team/resourcequotas/q",
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: q, namespace: team }\n"
            "status: { hard: { requests.cpu: '8' }, used: { requests.cpu: 4500m } }\n");
  const Error quota = submitted().error();
  EXPECT_EQ(quota.kind, ErrorKind::does_not_fit);
  EXPECT_EQ(quota.message, "2 pods want 4 of requests.cpu, and the quota 'q' leaves 3.5");
  stub_.take_away("/api/v1/namespaces/team/resourcequotas/q");
  stub_.take_away("/api/v1/namespaces/team/persistentvolumeclaims/runs");
  EXPECT_EQ(submitted().error().message, "there is no claim 'runs' in the namespace 'team'");
  refuse("PATCH", "/services/line", 403, "forbidden: namespace team because it is being terminated", true);
  EXPECT_NE(submitted().error().hint.find("taken away"), std::string::npos);
  EXPECT_TRUE(stub_.paths().empty());
}

TEST_F(OnKubernetes, a_stopped_run_says_that_it_saved_though_its_pods_are_gone) {
  const Record record = submitted().value().record;
  run_pods(record.submission);
  EXPECT_EQ(query(*cluster_, record).value().overall().state, RunState::running);
  obey(75, record.submission);
  const JobStatus stopped = stop(*cluster_, record, {}, context()).value().overall();
  EXPECT_EQ(stopped.state, RunState::stopped);
  EXPECT_EQ(stopped.reason, "saved");
  const std::vector<AllocationInterval> intervals = read_ledger(read_text_file(record.place + "/ledger").value());
  ASSERT_EQ(intervals.size(), 1u);
  EXPECT_EQ(*intervals[0].ended_at - intervals[0].began_at, 60);
  EXPECT_EQ(intervals[0].nodes, 2);
  EXPECT_EQ(*intervals[0].code, 75);
  // Another process, or another machine, sees the same.
  const std::unique_ptr<ClusterClient> another = kubernetes_by(stub_.api(clock_), "team");
  EXPECT_EQ(query(*another, record).value().overall().reason, "saved");
  // Resubmitted, it is another job.
  ask_.again = true;
  const Record again = submitted().value().record;
  EXPECT_NE(again.id, record.id);
  EXPECT_EQ(again.earlier, std::vector<std::string>{record.id});
}

TEST_F(OnKubernetes, another_machine_finds_it_and_ends_it) {
  const Record record = submitted().value().record;
  run_pods(record.submission);
  Submissions elsewhere = Submissions::open(folder_ + "/elsewhere").value();
  Audit audit(elsewhere.path(), clock_);
  const SubmissionContext there{elsewhere, audit, clock_};
  const std::vector<Record> found = adopt(*cluster_, there).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].submission, record.submission);
  EXPECT_EQ(found[0].id, record.id);
  EXPECT_TRUE(adopt(*cluster_, there).value().empty()) << "once";
  obey(75, record.submission);
  EXPECT_EQ(stop(*cluster_, found[0], {}, there).value().overall().reason, "saved");
  ask_.record = found[0];
  ask_.files.clear();
  ask_.again = true;
  EXPECT_TRUE(submit(*cluster_, ask_, there).ok()) << "its objects are in the note";
  EXPECT_TRUE(stub_.find(std::string(kJobs) + "/line"));
}

TEST_F(OnKubernetes, purge_leaves_nothing_under_the_label) {
  const Record record = submitted().value().record;
  Node job = *stub_.find(std::string(kJobs) + "/line");
  stub_.put(std::string(kJobs) + "/line",
            job.set("status", parse_yaml("conditions: [{ type: Complete, status: 'True' }]", "test").value()));
  ASSERT_TRUE(purge(*cluster_, record, context()).ok());
  expect_nothing_there();
}

TEST_F(OnKubernetes, volumes_stay_with_their_claims) {
  const std::string volume = "/api/v1/persistentvolumes/line-volume-0";
  ask_.files = {{"job.yaml", std::string("apiVersion: v1\nkind: PersistentVolume\nmetadata: { name: line-volume-0, "
                                         "labels: { systole/run: line } }\n---\n") +
                                 kObjects}};
  refuse("PATCH", "/jobs/line", 422, "a webhook says no", false);
  EXPECT_FALSE(submitted().ok());
  EXPECT_TRUE(stub_.find(volume)) << "what is taken back";
  stub_.clear();
  const Record record = submitted().value().record;
  Node job = *stub_.find(std::string(kJobs) + "/line");
  stub_.put(std::string(kJobs) + "/line",
            job.set("status", parse_yaml("conditions: [{ type: Complete, status: 'True' }]", "test").value()));
  ASSERT_TRUE(purge(*cluster_, record, context()).ok());
  EXPECT_TRUE(stub_.find(volume));
  EXPECT_EQ(stub_.paths().size(), 2u) << "and the claim";
  EXPECT_FALSE(submissions_.find("line").value());
  for (const char* kind : {"PersistentVolume", "PersistentVolumeClaim", "StorageClass"})
    EXPECT_TRUE(holds_data(kind)) << kind;
  EXPECT_FALSE(holds_data("Service"));
}

TEST_F(OnKubernetes, a_token_of_the_kubeconfig_is_nowhere) {
  submitted().value();
  const std::unique_ptr<ClusterClient> refused = [&] {
    KubeAccess access = stub_.access();
    access.user.token = "PLANTED";
    return kubernetes_by(std::make_unique<KubeApi>(std::make_shared<KubeCredentials>(access, clock_), clock_), "team");
  }();
  std::string all = to_string(query(*refused, *submissions_.find("line").value()).error());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
    if (entry.is_regular_file()) all += read_text_file(entry.path().string()).value();
  for (const std::string& path : stub_.paths()) all += to_json(*stub_.find(path));
  EXPECT_EQ(all.find("PLANTED"), std::string::npos);
  EXPECT_EQ(all.find("Bearer"), std::string::npos);
  EXPECT_EQ(all.find("known"), std::string::npos);
}

}  // namespace
}  // namespace systole
