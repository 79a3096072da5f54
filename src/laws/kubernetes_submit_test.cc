// submit, runs, logs, stop, resume, exec and results on a real Kubernetes that runs its pods (tools/kubelet).
#include <algorithm>
#include <set>
#include <sstream>

#include "laws/drawn_points.h"
#include "laws/kubernetes_cluster.h"
#include "laws/slow_steps.h"

namespace systole {
namespace {

// On two nodes of one rank each; exact, to compare interrupted with undisturbed runs.
constexpr const char* kJob =
    "systole: 1\nname: line\nmodel: { family: mlp, inputs: 64, hidden: [], outputs: 10, loss: squared_error }\n"
    "data: { kind: linear, rows: 60000, held_out_rows: 100, noise: 0.1 }\n"
    "train: { batch: 32, steps: 2500, exact: true, optimizer: { kind: sgd, rate: 0.01 } }\n"
    "checkpoint: { every: 200 }\nmesh: { data: 2 }\nranks: { notice: 8s }\n"
    "resources: { nodes: 2, threads: 1, memory: 256MiB }\n"
    "image: registry.example/systole@sha256:1111111111111111111111111111111111111111111111111111111111111111\n"
    "claims: { /runs: runs }\nfolder: /runs\nkubernetes: { selector: { systole.test/pods: run } }\n";
constexpr const char* kSmall =
    "systole: 1\nname: small\ncommand: [sh, -c, echo hello]\nresources: { threads: 1, memory: 64MiB }\n"
    "image: registry.example/systole@sha256:1111111111111111111111111111111111111111111111111111111111111111\n"
    "claims: { /runs: runs }\nfolder: /runs\nkubernetes: { selector: { systole.test/pods: run } }\n";

class KubernetesSubmit : public Kubernetes {
 protected:
  static void SetUpTestSuite() {
    begin("");
    add_nodes({"node-0", "node-1"}, "cpu=4,memory=4Gi");
  }
  void SetUp() override {
    Kubernetes::SetUp();
    if (IsSkipped()) return;
    write("job.yaml", kJob);
    write("small.yaml", kSmall);
    write("claim.yaml",
          "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: runs }\n"
          "spec: { accessModes: [ReadWriteMany], resources: { requests: { storage: 1Gi } } }\n");
    out("kubectl apply -f claim.yaml");
    ASSERT_TRUE(waits([&] { return run("kubectl get nodes | grep -c 'node-.* Ready'").out >= "2"; }));
  }
  void TearDown() override {
    if (IsSkipped() || !missing_.empty()) return;
    if (HasFailure())
      std::cerr << run("kubectl get pods -o wide; kubectl get events | tail -n 20; tail -n 20 ../kubelet.log").out;
    run("kubectl delete job,service,configmap,networkpolicy,secret -l app.kubernetes.io/managed-by=systole --wait; "
        "kubectl delete pods --all --grace-period=0 --force; kubectl delete pvc --all");
  }

  std::string jobs() const { return run("kubectl get jobs -o name | sort").out; }
  std::string under_label(const std::string& name) const {
    return run("kubectl get all,configmap,secret,networkpolicy -o name -l systole/run=" + name).out;
  }
  // The expected result: the same run on this machine, without Kubernetes. In one process, since exact training does
  // not depend on their number.
  void expect_as_undisturbed(const std::string& home) const {
    const Captured here = run(
        "\"$SYSTOLE\" run job.yaml --set 'mesh={data: 1}' --set resources.nodes=1 --folder undisturbed >here.log 2>&1");
    ASSERT_EQ(here.exit.code, 0) << run("tail -n 20 here.log").out;
    const Captured same = run(fmt::format("\"$SYSTOLE\" ckpt diff undisturbed {}", home));
    EXPECT_EQ(same.exit.code, 0) << same.out << same.err;
  }
};

TEST_F(KubernetesSubmit, is_followed_to_its_end_and_its_results_are_brought_home) {
  EXPECT_TRUE(has(systole("submit job.yaml --on kubernetes"), "line: submitted as kubernetes job line/"));
  const std::string followed = systole("logs -f line --all");
  EXPECT_TRUE(has(followed, "finished at step 2500")) << followed;
  EXPECT_TRUE(has(followed, "[finished as kubernetes job ")) << followed;
  EXPECT_EQ(told("line"), "finished");
  EXPECT_NE(told("line", "node_seconds"), "0");
  EXPECT_TRUE(has(systole("results line --out home"), "home: checkpoint of step 2500, verified"));
  expect_as_undisturbed("home");
  EXPECT_TRUE(has(systole("submit job.yaml --on kubernetes", 1), "the run 'line' has finished"));
  systole("stop --purge line");
  EXPECT_EQ(under_label("line"), "");
  EXPECT_TRUE(has(systole("runs --verify-audit"), "each holds"));
}

TEST_F(KubernetesSubmit, a_stopped_run_saves_and_resumes_to_the_same_bytes) {
  run(slow_steps(300));
  systole("submit job.yaml --on kubernetes");
  ASSERT_TRUE(writes("line", "step 50 "));
  EXPECT_TRUE(has(systole("stop line"), "stopped as kubernetes job"));
  EXPECT_EQ(told("line", "reason"), "saved");
  EXPECT_TRUE(has(systole("submit job.yaml --on kubernetes", 1), "systole resume line"));
  EXPECT_TRUE(has(systole("resume line"), "submitted again as kubernetes job"));
  ASSERT_TRUE(becomes("line", "finished"));
  systole("results line --out home");
  expect_as_undisturbed("home");
}

// A dollar per second; the ledger is in the run's folder, in the claim.
TEST_F(KubernetesSubmit, at_its_budget_a_run_saves_and_stops_and_goes_on_with_more_to_the_same_bytes) {
  run(slow_steps(700));
  systole("submit job.yaml --on kubernetes --set resources.price=1800 --set objective.budget=6");
  ASSERT_TRUE(becomes("line", "budget_used", 120)) << told("line") << told("line", "reason");
  EXPECT_TRUE(has(told("line", "reason"), "its budget is used")) << told("line", "reason");
  EXPECT_EQ(run("kubectl get pods -o name | wc -l").out, "2\n") << "none is begun again";
  EXPECT_TRUE(has(systole("resume line", 2), "its budget is $6.00"));
  EXPECT_TRUE(has(systole("resume line --set objective.budget=1000"), "submitted again as kubernetes job"));
  ASSERT_TRUE(becomes("line", "finished", 120));
  systole("results line --out home");
  EXPECT_EQ(run("grep -c began home/ledger").out, "2\n");
  EXPECT_EQ(run("awk '$1 == \"began\" && !b { b = $4 } $1 == \"ended\" && !e { e = $4; print (e - b <= 6), $5 }' "
                "home/ledger")
                .out,
            "1 77\n")
      << run("cat home/ledger").out;
  expect_as_undisturbed("home");
}

TEST_F(KubernetesSubmit, an_evicted_pod_is_a_preemption_and_the_run_goes_on) {
  run(slow_steps(1500));
  systole("submit job.yaml --on kubernetes");
  ASSERT_TRUE(writes("line", "step 50 "));
  const std::string pod = out("kubectl get pods -l systole/run=line -o name | tail -n 1 | cut -d/ -f2 | tr -d '\\n'");
  write("evict.json", "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"" + pod +
                          "\",\"namespace\":\"default\"}}");
  out(fmt::format("kubectl create --raw /api/v1/namespaces/default/pods/{}/eviction -f evict.json", pod));
  EXPECT_TRUE(becomes("line", "preempted")) << told("line");
  ASSERT_TRUE(becomes("line", "finished", 120));
  systole("results line --out home");
  expect_as_undisturbed("home");
}

TEST_F(KubernetesSubmit, submitted_twice_at_once_it_is_one_job) {
  run("sed -i 's/steps: 2500/steps: 1000000/' job.yaml");  // runs until it is stopped
  run("for i in 1 2 3 4; do \"$SYSTOLE\" submit job.yaml --on kubernetes >out.$i 2>&1 & done; wait");
  EXPECT_EQ(jobs(), "job.batch/line\n") << run("cat out.*").out;
  run("mkdir -p elsewhere; cp job.yaml elsewhere");
  EXPECT_TRUE(has(systole("submit job.yaml --on kubernetes", 0, "elsewhere"), "had been submitted as"));
  EXPECT_EQ(jobs(), "job.batch/line\n");
  systole("stop --now line");
}

TEST_F(KubernetesSubmit, a_command_runs_beside_the_ranks) {
  run("sed -i 's/steps: 2500/steps: 1000000/' job.yaml");  // runs until it is stopped
  systole("submit job.yaml --on kubernetes");
  ASSERT_TRUE(writes("line", "step 100 "));
  EXPECT_EQ(run("\"$SYSTOLE\" exec line -- sh -c 'echo $HOSTNAME; echo why >&2; exit 5'").exit.code, 5);
  EXPECT_EQ(run("\"$SYSTOLE\" exec line -- sh -c 'echo $HOSTNAME' 2>/dev/null").out, "line-0\n");
  // The scheduler may place a pod on any node.
  for (const char* node : {"node-0", "node-1"}) {
    const std::string there = out(fmt::format(
        "kubectl get pods --field-selector spec.nodeName={},status.phase=Running -o name | grep pod/line-", node));
    const Captured said = run(fmt::format("\"$SYSTOLE\" exec line --node {} -- sh -c 'echo $HOSTNAME'", node));
    ASSERT_TRUE(said.out.ends_with('\n')) << node << said.err;
    EXPECT_TRUE(has(there, "pod/" + said.out.substr(0, said.out.size() - 1) + "-"))
        << node << ": " << there << said.out;
  }
  EXPECT_EQ(run("head -c 300000 /dev/zero | \"$SYSTOLE\" exec line -- wc -c").out, "300000\n");
  const Captured shell =
      run("script -qec '\"'$SYSTOLE'\" ssh line' /dev/null <<<'tty; ls /runs/line/workload.yaml; exit 3'");
  EXPECT_EQ(shell.exit.code, 3) << shell.out;
  EXPECT_TRUE(has(shell.out, "/dev/pts/")) << shell.out;
  EXPECT_TRUE(has(systole("exec line --node node-9 -- true", 2), "it has: ")) << "no such node";
  systole("stop --now --purge line");
  EXPECT_EQ(under_label("line"), "");
}

TEST_F(KubernetesSubmit, killed_at_any_point_it_comes_to_one_job) {
  const std::vector<int> points = drawn_points(10, 3);
  for (const int i : points) {
    run(fmt::format("timeout -s KILL {} \"$SYSTOLE\" submit small.yaml --on kubernetes --run small-{} >/dev/null 2>&1",
                    0.02 + 0.04 * i, i));
    systole(fmt::format("submit small.yaml --on kubernetes --run small-{}", i));
  }
  for (const int i : points) EXPECT_TRUE(becomes(fmt::format("small-{}", i), "finished")) << i;
  std::istringstream all(jobs());
  std::multiset<std::string> names;
  for (std::string line; std::getline(all, line);) names.insert(line);
  EXPECT_EQ(names.size(), points.size()) << jobs();
  EXPECT_TRUE(has(systole("runs --verify-audit"), "each holds"));
}

TEST_F(KubernetesSubmit, a_log_is_followed_through_a_server_that_dies_and_comes_back) {
  write("long.yaml", kSmall);
  run("sed -i 's/^name: small/name: long/; s/echo hello/for i in $(seq 1 200); do echo line $i.; sleep 0.05; done/' "
      "long.yaml");
  systole("submit long.yaml --on kubernetes");
  ASSERT_TRUE(writes("long", "line 20."));
  run("(sleep 1; " + std::string(kKube) + " api ../cluster kill; sleep 1; " + std::string(kKube) +
      " api ../cluster start) >/dev/null 2>&1 & \"$SYSTOLE\" logs -f long >followed 2>told; wait");
  const std::string counted =
      run("grep -o 'line [0-9]*\\.' followed | sort | uniq -c | awk '{ print $1 }' | sort | uniq -c").out;
  EXPECT_TRUE(has(counted, "200 1"))
      << counted
      << run("cat told; for i in $(seq 1 200); do grep -q \"line $i\\.\" followed || printf '%s ' $i; done").out;
  EXPECT_EQ(std::ranges::count(counted, '\n'), 1) << "none twice: " << counted;
}

TEST_F(KubernetesSubmit, a_gang_that_does_not_fit_waits_with_the_schedulers_reason) {
  systole("submit job.yaml --on kubernetes --set resources.memory=9000GiB");
  EXPECT_TRUE(waits([&] { return has(told("line", "reason"), "Insufficient memory"); })) << told("line", "reason");
  EXPECT_EQ(told("line"), "queued");
  run("mkdir -p elsewhere");
  EXPECT_TRUE(has(systole("runs --on kubernetes", 0, "elsewhere"), "line: found on kubernetes"));
  systole("stop --purge line", 0, "elsewhere");
  EXPECT_EQ(under_label("line"), "");
}

TEST_F(KubernetesSubmit, a_failed_run_says_why) {
  run("sed 's/echo hello/echo the reason >\\&2; exit 7/; s/^name: small/name: bad/' small.yaml >bad.yaml; "
      "echo 'ranks: { retries: 0 }' >>bad.yaml");
  systole("submit bad.yaml --on kubernetes");
  EXPECT_TRUE(has(systole("logs -f bad", 1), "the reason"));
  EXPECT_EQ(told("bad"), "failed");
  EXPECT_TRUE(has(told("bad", "reason"), "exit code")) << told("bad", "reason");
}

}  // namespace
}  // namespace systole
