// States and intervals from objects as an API server returns them.
#include "operate/targets/kubernetes/kube_status.h"

#include <gtest/gtest.h>

#include "operate/targets/kubernetes/kube_api.h"
#include "operate/targets/kubernetes/kube_objects.h"

namespace systole {
namespace {

Node yaml(const std::string& text) { return parse_yaml(text, "test").value(); }

// A Job of two pods; `more` is merged into its metadata's annotations, `spec` and `status`.
Node job(const std::string& status = "{}", const std::string& annotations = "{}", bool suspended = false) {
  return yaml(fmt::format(R"(
apiVersion: batch/v1
kind: Job
metadata:
  name: line
  namespace: team
  uid: 0123456789abcdef
  labels: {{ systole/run: line, systole/submission: s1 }}
  annotations: {}
spec:
  suspend: {}
  parallelism: 2
  template: {{ metadata: {{ labels: {{ systole/run: line }} }}, spec: {{ containers: [{{ name: systole, image: x }}] }} }}
status: {}
)",
                          annotations, suspended, status));
}
Node pod(int index, const std::string& status, const std::string& more = "") {
  return yaml(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata:
  name: line-{0}-abcde
  labels: {{ systole/run: line, systole/submission: s1, batch.kubernetes.io/job-completion-index: "{0}" }}
{2}
spec: {{ nodeName: n{0} }}
status: {1}
)",
                          index, status, more));
}
std::string container(const std::string& state) {
  return "containerStatuses: [{ name: systole, state: " + state + " }]";
}
const std::string kRunning =
    "{ phase: Running, " + container("{ running: { startedAt: '2026-01-01T00:00:10Z' } }") + " }";
std::string ended(int code, const std::string& conditions = "[]") {
  return fmt::format(
      "{{ phase: Failed, conditions: {}, {} }}", conditions,
      container(fmt::format("{{ terminated: {{ exitCode: {}, startedAt: '2026-01-01T00:00:10Z', finishedAt: "
                            "'2026-01-01T00:01:10Z' }} }}",
                            code)));
}
const std::string kUnschedulable =
    "{ phase: Pending, conditions: [{ type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes "
    "are available } ] }";

TEST(KubeStatus, a_run_is_named_by_its_labels_and_waits_until_all_of_its_pods_run) {
  const JobStatus status = status_of({job(), {pod(0, kRunning), pod(1, "{ phase: Pending }")}, {}, ""});
  EXPECT_EQ(status.id, "line/01234567");
  EXPECT_EQ(status.run, "line");
  EXPECT_EQ(status.submission, "s1");
  EXPECT_EQ(status.state, RunState::starting);
  EXPECT_EQ(status.nodes, "n0,n1");
  EXPECT_EQ(status_of({job(), {pod(0, kRunning), pod(1, kRunning)}, {}, ""}).state, RunState::running);
}

TEST(KubeStatus, what_keeps_a_pod_is_said_in_the_clusters_words) {
  Node waits = pod(1, kUnschedulable);
  waits.set("spec", Node::map());
  const JobStatus queued = status_of({job(), {pod(0, kRunning), waits}, {}, ""});
  EXPECT_EQ(queued.state, RunState::queued);
  EXPECT_EQ(queued.reason, "Unschedulable: 0/3 nodes are available");
  const JobStatus pull =
      status_of({job(),
                 {pod(0, kRunning),
                  pod(1, "{ phase: Pending, " +
                             container("{ waiting: { reason: ImagePullBackOff, message: no such image } }") + " }")},
                 {},
                 ""});
  EXPECT_EQ(pull.state, RunState::starting);
  EXPECT_EQ(pull.reason, "ImagePullBackOff: no such image");
  const JobStatus quota = status_of({job(), {}, {}, "FailedCreate: exceeded quota"});
  EXPECT_EQ(quota.state, RunState::queued);
  EXPECT_EQ(quota.reason, "FailedCreate: exceeded quota");
}

TEST(KubeStatus, an_evicted_pod_is_a_preemption_until_another_has_its_place) {
  const Node evicted = pod(
      1, ended(137, "[{ type: DisruptionTarget, status: 'True', reason: EvictionByEvictionAPI, message: evicted }]"));
  Node waits = pod(1, kUnschedulable);
  waits.set("spec", Node::map());
  const JobStatus status = status_of({job(), {pod(0, kRunning), evicted, waits}, {}, ""});
  EXPECT_EQ(status.state, RunState::preempted);
  EXPECT_EQ(status.restarts, 1);
  EXPECT_EQ(status_of({job(), {pod(0, kRunning), evicted, pod(1, kRunning)}, {}, ""}).state, RunState::running);
}

TEST(KubeStatus, between_the_last_pod_and_the_jobs_own_word_it_is_ending) {
  EXPECT_EQ(status_of({job(), {pod(0, "{ phase: Succeeded }"), pod(1, "{ phase: Succeeded }")}, {}, ""}).state,
            RunState::saving);
  EXPECT_EQ(status_of({job(), {pod(0, ended(1))}, {}, ""}).state, RunState::saving);
  EXPECT_EQ(status_of({job(), {pod(0, ended(75))}, {}, ""}).state, RunState::preempted);
}

TEST(KubeStatus, the_exit_codes_of_ranks_say_how_it_ended) {
  EXPECT_EQ(status_of({job("{ conditions: [{ type: Complete, status: 'True' }] }"), {}, {}, ""}).state,
            RunState::finished);
  const auto failed = [](int code) {
    return status_of({job("{ conditions: [{ type: Failed, status: 'True', reason: PodFailurePolicy, message: m }] }"),
                      {pod(0, ended(code))},
                      {},
                      ""});
  };
  EXPECT_EQ(failed(1).state, RunState::failed);
  EXPECT_EQ(failed(1).reason, "exit code 1");
  EXPECT_EQ(failed(3).reason.substr(0, 11), "exit code 3");
  EXPECT_NE(failed(75).reason.find("begun again as often as it may be"), std::string::npos);
  EXPECT_EQ(failed(77).state, RunState::budget_used) << "at its budget, though nobody asked";
  EXPECT_TRUE(failed(77).reason.starts_with("its budget is used")) << failed(77).reason;
  EXPECT_EQ(exit_code_of(std::vector<std::int64_t>{75, 143, 77}), 77) << "the others were ended for it";
  EXPECT_EQ(failed(1).restarts, 0);
  EXPECT_EQ(failed(1).ended_at - failed(1).began_at, 60);
  EXPECT_EQ(
      status_of(
          {job("{ conditions: [{ type: Failed, status: 'True', reason: DeadlineExceeded, message: m }] }"), {}, {}, ""})
          .reason,
      "DeadlineExceeded: m");
}

TEST(KubeStatus, a_run_that_was_asked_to_stop_saves_and_is_stopped) {
  const std::string asked = "{ systole/stop: save }";
  EXPECT_EQ(
      status_of({job("{}", asked, true), {pod(0, kRunning, "  deletionTimestamp: '2026-01-01T00:02:00Z'")}, {}, ""})
          .state,
      RunState::saving);
  EXPECT_EQ(status_of({job("{}", asked, true), {}, {}, ""}).state, RunState::stopped);
  const JobStatus saved =
      status_of({job("{}", "{ systole/stop: save, systole/ended: '75 1767225730' }", true), {}, {}, ""});
  EXPECT_EQ(saved.state, RunState::stopped);
  EXPECT_EQ(saved.reason, "saved");
  EXPECT_EQ(saved.ended_at, 1767225730);
}

TEST(KubeStatus, kueue_says_why_it_holds_a_run) {
  const auto held = [](const std::string& conditions) {
    return status_of({job("{}", "{}", true), {}, yaml("status: { conditions: [" + conditions + "] }"), ""});
  };
  EXPECT_EQ(held("{ type: QuotaReserved, status: 'False', message: no quota }").reason, "Kueue: no quota");
  EXPECT_EQ(held("{ type: QuotaReserved, status: 'False', message: no quota }").state, RunState::queued);
  EXPECT_EQ(held("{ type: Evicted, status: 'True', message: Preempted }").state, RunState::preempted);
  EXPECT_EQ(held("{ type: Admitted, status: 'True', message: m }").state, RunState::starting);
  EXPECT_EQ(status_of({job("{}", "{}", true), {}, {}, ""}).reason, "suspended: nobody has let it begin");
}

TEST(KubeStatus, a_turn_is_kept_when_its_pods_are_gone) {
  KubeRunObjects objects{job(), {pod(0, kRunning), pod(1, kRunning)}, {}, ""};
  std::vector<AllocationInterval> ledger;
  const auto merged = [&] {
    merge_allocations(ledger, std::vector{status_of(objects)});
    return lines_beyond({}, ledger);
  };
  EXPECT_EQ(merged(), "began line/01234567 0 1767225610 2\n");
  EXPECT_EQ(merged(), "began line/01234567 0 1767225610 2\n") << "once";
  objects.maker = job("{}", "{ systole/stop: save, systole/ended: '75 1767225730' }", true);
  objects.pods.clear();
  EXPECT_EQ(merged(), "began line/01234567 0 1767225610 2\nended line/01234567 0 1767225730 75\n");
}

TEST(KubeObjects, every_label_of_the_run_gets_the_submissions_and_no_selector) {
  const Node object = labelled(yaml("metadata: { labels: { systole/run: line } }\n"
                                    "spec: { podSelector: { matchLabels: { systole/run: line } }, list: [{ template: { "
                                    "metadata: { labels: { systole/run: line } } } }] }\n"),
                               "line", "s9");
  EXPECT_EQ(to_json(object),
            R"({"metadata":{"labels":{"systole/run":"line","systole/submission":"s9"}},"spec":{"podSelector":)"
            R"({"matchLabels":{"systole/run":"line"}},"list":[{"template":{"metadata":{"labels":{"systole/run":)"
            R"("line","systole/submission":"s9"}}}}]}})");
}

TEST(KubeObjects, gangs_are_counted_through_what_stands_above_them) {
  EXPECT_EQ(gangs_of(job()).at(0).count, 2);
  const Node set = yaml(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: { name: set, namespace: team }
spec:
  replicatedJobs:
    - name: slice
      replicas: 3
      template: { spec: { parallelism: 4, template: { spec: { containers: [{ name: a, resources: { requests: { cpu: 500m, memory: 1Gi }, limits: { nvidia.com/gpu: 8 } } }] } } } }
)");
  const std::vector<PodGang> gangs = gangs_of(set);
  ASSERT_EQ(gangs.size(), 1u);
  EXPECT_EQ(gangs[0].count, 12);
  std::map<std::string, double> requests = requests_of(gangs[0].pod);
  EXPECT_EQ(requests["cpu"], 0.5);
  EXPECT_EQ(requests["requests.memory"], 1024.0 * 1024 * 1024);
  EXPECT_EQ(requests["limits.nvidia.com/gpu"], 8);
}

TEST(KubeObjects, documents_are_told_apart_and_keep_their_lines) {
  const std::vector<Node> all = read_documents("# head\na: |\n  x\n  --- y\n---\nb: 1\n---\n", "f").value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(text_at(all[0], {"a"}), "x\n--- y\n");
  EXPECT_EQ(read_documents("a: 1\n---\nb: 1\nb: 2\n", "f").error().where.line, 4);
}

}  // namespace
}  // namespace systole
