// Gangs on accelerators of a real Kubernetes: JobSets on TPUs, and Kueue's queues and priorities. Nodes are simulated:
// placement and queueing are real; nothing runs in a pod.
#include <stdlib.h>

#include <algorithm>

#include "laws/kubernetes_cluster.h"

namespace systole {
namespace {

// A program on the four hosts of a TPU v5e slice.
constexpr const char* kSlice =
    "systole: 1\nname: slice\ncommand: [python3, train.py]\nresources: { accelerators: 'v5e:4x4' }\n"
    "image: registry.example/train@sha256:1111111111111111111111111111111111111111111111111111111111111111\n"
    "claims: { /runs: runs }\nfolder: /runs\n";

class KubernetesQueue : public Kubernetes {
 protected:
  static void SetUpTestSuite() {
    ::setenv("POD_SECONDS", "8", 1);
    begin("jobset kueue");
  }
  static void TearDownTestSuite() {
    ::unsetenv("POD_SECONDS");
    Kubernetes::TearDownTestSuite();
  }
  void SetUp() override {
    Kubernetes::SetUp();
    if (IsSkipped()) return;
    write("slice.yaml", kSlice);
    write("claim.yaml",
          "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: runs }\n"
          "spec: { accessModes: [ReadWriteMany], resources: { requests: { storage: 1Gi } } }\n");
    out("kubectl apply -f claim.yaml");
  }
  void TearDown() override {
    if (!missing_.empty()) return;
    if (HasFailure())
      std::cerr << run("kubectl get jobsets,workloads,pods -o wide; kubectl get events | tail -n 20").out;
    run("kubectl delete jobsets --all --wait; kubectl delete service,configmap,networkpolicy,secret "
        "-l app.kubernetes.io/managed-by=systole; kubectl delete pods --all --grace-period=0 --force");
  }
  // An administrator's queue, with room for one slice.
  void make_queue(const std::string& keys) const {
    systole(
        fmt::format("render slice.yaml --on kubernetes --out for-{0} --set 'kubernetes={{ queue: research, "
                    "queue_nodes: 4{1} }}'",
                    keys.size(), keys));
    // Kueue's webhook may start slightly later than its controller.
    EXPECT_TRUE(waits(
        [&] { return run(fmt::format("kubectl apply --server-side -f for-{}/queues.yml", keys.size())).exit.ok(); }));
  }
  std::string submit(const std::string& name, const std::string& keys) const {
    return systole(fmt::format("submit slice.yaml --on kubernetes --run {} --set 'kubernetes={{ queue: research{} }}'",
                               name, keys));
  }
};

TEST_F(KubernetesQueue, a_slice_is_placed_on_its_hosts_and_no_other) {
  systole("submit slice.yaml --on kubernetes");
  const auto nodes = [&] {
    return run("kubectl get pods -l systole/run=slice -o jsonpath='{range .items[*]}{.spec.nodeName}{\"\\n\"}{end}' | "
               "sort")
        .out;
  };
  EXPECT_TRUE(waits([&] { return nodes() == "tpu-v5e-4x4-0-0\ntpu-v5e-4x4-0-1\ntpu-v5e-4x4-0-2\ntpu-v5e-4x4-0-3\n"; }))
      << nodes();
  EXPECT_TRUE(becomes("slice", "finished")) << told("slice") << told("slice", "reason");
}

TEST_F(KubernetesQueue, a_slice_that_nobody_has_waits_with_the_schedulers_reason) {
  systole("submit slice.yaml --on kubernetes --set resources.accelerators=v5e:8x8");
  EXPECT_TRUE(waits([&] { return has(told("slice", "reason"), "didn't match Pod's node affinity/selector"); }))
      << told("slice", "reason");
  EXPECT_EQ(told("slice"), "queued");
  systole("stop --now --purge slice");
}

TEST_F(KubernetesQueue, two_with_room_for_one_go_one_after_the_other) {
  make_queue("");
  submit("first", "");
  submit("second", "");
  bool waited = false, both = false;
  std::string reason;
  EXPECT_TRUE(waits(
      [&] {
        const std::string first = told("first"), second = told("second");
        if (first == "running" && second == "queued") {
          waited = true;
          reason = told("second", "reason");
        }
        both = both || (first == "running" && second == "running");
        return first == "finished" && second == "finished";
      },
      120))
      << told("first") << " " << told("second");
  EXPECT_TRUE(waited);
  EXPECT_FALSE(both);
  EXPECT_TRUE(has(reason, "quota")) << reason;
}

TEST_F(KubernetesQueue, who_has_the_higher_priority_preempts_and_the_other_goes_on) {
  make_queue(", priority: low, priority_value: 10");
  make_queue(", priority: high, priority_value: 1000");
  submit("patient", ", priority: low");
  ASSERT_TRUE(becomes("patient", "running")) << told("patient", "reason");
  submit("urgent", ", priority: high");
  EXPECT_TRUE(becomes("patient", "preempted")) << told("patient") << told("patient", "reason");
  EXPECT_TRUE(becomes("urgent", "finished")) << told("urgent") << told("urgent", "reason");
  EXPECT_TRUE(becomes("patient", "finished")) << told("patient") << told("patient", "reason");
}

}  // namespace
}  // namespace systole
