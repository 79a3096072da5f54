// TrainJob of Kubeflow Trainer, and its TrainingRuntime: we render the runtime, so the cluster needs none installed.
// The trainer turns it into a JobSet and tells the pods where they meet.
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

using Launcher = KubernetesSpec::Launcher;

// The label marks the job that trains.
constexpr const char* kRuntime = R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: { name: $name, namespace: $namespace, labels: $labels, annotations: $annotations }
spec:
  mlPolicy: $policy
  template:
    spec:
      failurePolicy: { maxRestarts: $retries }
      replicatedJobs:
        - name: node
          template:
            metadata: { labels: { trainer.kubeflow.org/trainjob-ancestor-step: trainer } }
            spec: { backoffLimit: 0, template: $template }
)";

constexpr const char* kTrainJob = R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: $metadata
spec:
  suspend: $suspend
  runtimeRef: { apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: $name }
  trainer: { numNodes: $nodes, numProcPerNode: $ranks }
)";

}  // namespace

Node trainjob_object(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  const bool torch = job.launcher == Launcher::torchrun;
  if (job.nodes.elastic())
    parts.wrong.push_back(
        key_error(ErrorKind::unsupported, "resources.nodes", "{}:{}: a TrainJob has no elastic policy", job.nodes.least,
                  job.nodes.most)
            .hinted(fmt::format("resources.nodes: {}; kubernetes.kind: pytorchjob has one", job.nodes.most)));
  Node policy = Node::map({{"numNodes", job.nodes.most}});
  policy.set(torch ? "torch" : "jax", Node::map());
  parts.objects.push_back(fill(kRuntime, {{"name", job.run},
                                          {"namespace", k.space},
                                          {"labels", k.labels},
                                          {"annotations", k.annotations},
                                          {"policy", std::move(policy)},
                                          {"retries", job.retries},
                                          {"template", pod_template(k, parts, {.container = "node"})}}));
  return fill(kTrainJob, {{"metadata", job_metadata(k, parts)},
                          {"suspend", parts.suspended ? Node(true) : Node()},
                          {"name", job.run},
                          {"nodes", job.nodes.most},
                          {"ranks", job.ranks_per_node}});
}

}  // namespace systole
