// Rendered Kubernetes files on a real cluster: the pods of a Job are processes on four nodes of tools/kubelet.
#include "laws/kubernetes_cluster.h"
#include "laws/slow_steps.h"

namespace systole {
namespace {

// Four nodes of one rank each; exact, to compare interrupted with undisturbed runs.
constexpr const char* kJob =
    "systole: 1\nname: {}\nmodel: {{ family: mlp, inputs: 64, hidden: [], outputs: 10, loss: squared_error }}\n"
    "data: {{ kind: linear, rows: 60000, held_out_rows: 100, noise: 0.1 }}\n"
    "train: {{ batch: {}, steps: 1000, exact: true, optimizer: {{ kind: sgd, rate: 0.01 }} }}\n"
    "checkpoint: {{ every: 100 }}\nmesh: {{ data: {} }}\nranks: {{ notice: 8s }}\n"
    "resources: {{ nodes: {}, threads: 1, memory: {} }}\n"
    "image: registry.example/systole@sha256:1111111111111111111111111111111111111111111111111111111111111111\n"
    "claims: {{ /runs: runs }}\nfolder: /runs\nkubernetes: {{ selector: {{ systole.test/pods: run }} }}\n";

class KubernetesRuns : public Kubernetes {
 protected:
  static void SetUpTestSuite() {
    begin("");
    add_nodes({"node-0", "node-1", "node-2", "node-3"});
  }
  void SetUp() override {
    Kubernetes::SetUp();
    if (IsSkipped()) return;
    write("claim.yaml",
          "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: runs }\n"
          "spec: { accessModes: [ReadWriteMany], resources: { requests: { storage: 1Gi } } }\n");
    out("kubectl apply -f claim.yaml");
    ASSERT_TRUE(waits([&] { return run("kubectl get nodes | grep -c 'node-.* Ready'").out >= "4"; }));
  }
  void TearDown() override {
    if (IsSkipped() || !missing_.empty()) return;
    if (HasFailure())
      std::cerr << run("kubectl get pods -o wide; kubectl get events | tail -n 20; tail -n 20 ../kubelet.log").out;
    run("kubectl delete job,service,configmap,networkpolicy -l app.kubernetes.io/managed-by=systole --wait; "
        "kubectl delete pods --all --grace-period=1; kubectl delete secret --all");
  }

  // Renders and applies, with the commands that `render` prints.
  void start(const std::string& name, int nodes = 4, const std::string& memory = "256MiB", int batch = 32,
             const std::string& change = "true") const {
    write("job.yaml", fmt::format(kJob, name, batch, nodes, nodes, memory));
    EXPECT_EQ(run(change).exit.code, 0);
    const Captured made = run("\"$SYSTOLE\" render job.yaml --on kubernetes");
    ASSERT_EQ(made.exit.code, 0) << made.err;
    int told = 0;
    for (std::size_t at = 0; at < made.err.size(); at = made.err.find('\n', at) + 1) {
      const std::string line = made.err.substr(at, made.err.find('\n', at) - at);
      if (!line.starts_with("token: ") && !line.starts_with("start: ")) continue;
      out(line.substr(7));
      ++told;
    }
    ASSERT_EQ(told, 2) << made.err;
  }
  std::string pod(const std::string& name, int index) const {
    return run(fmt::format("kubectl get pods -l systole/run={},batch.kubernetes.io/job-completion-index={} "
                           "--sort-by=.metadata.creationTimestamp -o name | tail -n 1 | tr -d '\\n'",
                           name, index))
        .out;
  }
  // The current output of all its pods.
  std::string all_logs(const std::string& name) const {
    return run(fmt::format("kubectl logs -l systole/run={} --tail=-1 --prefix", name)).out;
  }
  void evict(const std::string& of) const {
    const std::string name = of.substr(of.find('/') + 1);
    write("evict.json",
          fmt::format("{{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{{\"name\":\"{}\","
                      "\"namespace\":\"default\"}}}}",
                      name));
    out(fmt::format("kubectl create --raw /api/v1/namespaces/default/pods/{}/eviction -f evict.json", name));
  }
  void expect_completes(const std::string& name, int seconds = 60) const {
    const Captured ended =
        run(fmt::format("kubectl wait --for=condition=complete job/{} --timeout={}s", name, seconds));
    EXPECT_EQ(ended.exit.code, 0) << ended.err << all_logs(name);
  }
  // The expected result: the same run on this machine, without Kubernetes. In one process, since exact training does
  // not depend on their number.
  void expect_as_undisturbed(const std::string& name) const {
    const Captured here = run(
        "\"$SYSTOLE\" run job.yaml --set 'mesh={data: 1}' --set resources.nodes=1 --folder undisturbed >here.log 2>&1");
    ASSERT_EQ(here.exit.code, 0) << read_text_file((folder_ / "here.log").string()).value();
    const std::string volume = out("kubectl get pvc runs -o 'jsonpath={.spec.volumeName}'");
    const std::string held = out("kubectl get pv " + volume + " -o 'jsonpath={.spec.hostPath.path}'");
    const Captured same = run(fmt::format("\"$SYSTOLE\" ckpt diff undisturbed {}/{}", held, name));
    EXPECT_EQ(same.exit.code, 0) << same.out << same.err;
  }
  void evicted(const std::string& name, int index) {
    start(name, 4, "256MiB", 32, slow_steps(300));
    ASSERT_TRUE(waits([&] { return has(all_logs(name), "step 50 "); })) << all_logs(name);
    const std::string first = pod(name, index);
    run(fmt::format("kubectl logs -f {} >evicted.log 2>&1 </dev/null & sleep 0.3", first));
    evict(first);
    expect_completes(name, 90);
    const std::string said = all_logs(name);
    EXPECT_NE(pod(name, index), first);
    EXPECT_TRUE(has(said, "stopped with its state saved")) << said;
    EXPECT_TRUE(has(said, "finished at step 300")) << said;
    expect_as_undisturbed(name);
  }
  // Why the scheduler has not placed one of its pods; "" if it has.
  std::string unscheduled(const std::string& name) const {
    return run(fmt::format("kubectl get pods -l systole/run={} -o 'jsonpath={{.items[*].status.conditions[?(@.reason=="
                           "\"Unschedulable\")].message}}'",
                           name))
        .out;
  }
};

TEST_F(KubernetesRuns, four_pods_train_what_one_machine_does) {
  start("line");
  expect_completes("line");
  EXPECT_TRUE(has(all_logs("line"), "finished at step 1000")) << all_logs("line");
  const std::string nodes = out("kubectl get pods -l systole/run=line -o 'jsonpath={.items[*].spec.nodeName}'");
  for (int n = 0; n < 4; ++n) EXPECT_TRUE(has(nodes, fmt::format("node-{}", n))) << nodes;
  expect_as_undisturbed("line");
}

TEST_F(KubernetesRuns, an_evicted_pod_saves_and_the_run_comes_to_the_same_bytes) { evicted("evicted", 2); }

TEST_F(KubernetesRuns, so_does_one_whose_leader_is_evicted) { evicted("leader", 0); }

TEST_F(KubernetesRuns, pods_that_fit_nowhere_wait_and_the_scheduler_says_why) {
  start("large", 4, "4GiB");
  ASSERT_TRUE(waits([&] { return has(unscheduled("large"), "Insufficient memory"); })) << unscheduled("large");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(out("kubectl get pods -l systole/run=large -o 'jsonpath={.items[*].spec.nodeName}'"), "");
}

TEST_F(KubernetesRuns, a_gang_short_of_a_node_trains_nothing_until_it_comes) {
  start("gang", 5, "256MiB", 30);
  ASSERT_TRUE(waits([&] { return has(unscheduled("gang"), "Insufficient cpu"); })) << unscheduled("gang");
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_FALSE(has(all_logs("gang"), "step ")) << all_logs("gang");
  add_nodes({"node-4"});
  expect_completes("gang");
  EXPECT_TRUE(has(all_logs("gang"), "finished at step 1000")) << all_logs("gang");
  expect_as_undisturbed("gang");
}

}  // namespace
}  // namespace systole
