// PyTorchJob and JAXJob of Kubeflow's training operator. It gives its pods their ranks and a Service each; the
// containers have the names that it requires.
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

using Launcher = KubernetesSpec::Launcher;

constexpr const char* kPyTorchJob = R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: $metadata
spec:
  nprocPerNode: $ranks
  elasticPolicy: $elastic
  runPolicy: { suspend: $suspend, backoffLimit: $backoff, cleanPodPolicy: None }
  pytorchReplicaSpecs: $replicas
)";

constexpr const char* kElastic = R"(
rdzvBackend: c10d
minReplicas: $least
maxReplicas: $most
maxRestarts: $retries
)";

constexpr const char* kJaxJob = R"(
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: $metadata
spec:
  runPolicy: { suspend: $suspend, backoffLimit: $backoff, cleanPodPolicy: None }
  jaxReplicaSpecs: { Worker: $workers }
)";

Node replicas(std::int64_t count, const Node& pods) {
  return Node::map({{"replicas", count}, {"restartPolicy", "OnFailure"}, {"template", pods}});
}

Node backoff(const ClusterJob& job) { return job.retries * job.nodes.most; }
Node suspend(const PodParts& parts) { return parts.suspended ? Node(true) : Node(); }

}  // namespace

Node pytorchjob_object(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  if (job.nodes.elastic() && job.launcher != Launcher::torchrun)
    parts.wrong.push_back(key_error(ErrorKind::invalid, "resources.nodes",
                                    "{}:{}: a program that is started once stays as many", job.nodes.least,
                                    job.nodes.most)
                              .hinted("kubernetes.launcher: torchrun"));
  const Node pods = pod_template(k, parts, {.container = "pytorch", .restart = ""});
  Node specs, elastic;
  if (job.nodes.elastic()) {  // only workers: any of them may be missing
    elastic = fill(kElastic, {{"least", job.nodes.least}, {"most", job.nodes.most}, {"retries", job.retries}});
    specs.set("Worker", replicas(job.nodes.most, pods));
  } else {
    specs.set("Master", replicas(1, pods));
    if (!job.alone()) specs.set("Worker", replicas(job.nodes.most - 1, pods));
  }
  return fill(kPyTorchJob, {{"metadata", job_metadata(k, parts)},
                            {"ranks", std::to_string(job.ranks_per_node)},  // a string: it may be "auto"
                            {"elastic", std::move(elastic)},
                            {"suspend", suspend(parts)},
                            {"backoff", backoff(job)},
                            {"replicas", std::move(specs)}});
}

Node jaxjob_object(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  if (job.launcher != Launcher::program)
    parts.wrong.push_back(key_error(ErrorKind::invalid, "kubernetes.launcher", "torchrun starts no program of JAX")
                              .hinted("kubernetes.launcher: program, or kind: pytorchjob"));
  if (job.nodes.elastic())
    parts.wrong.push_back(key_error(ErrorKind::unsupported, "resources.nodes",
                                    "{}:{}: a JAXJob has as many pods as it says", job.nodes.least, job.nodes.most)
                              .hinted(fmt::format("resources.nodes: {}", job.nodes.most)));
  const Node pods = pod_template(k, parts, {.container = "jax", .restart = ""});
  return fill(kJaxJob, {{"metadata", job_metadata(k, parts)},
                        {"suspend", suspend(parts)},
                        {"backoff", backoff(job)},
                        {"workers", replicas(job.nodes.most, pods)}});
}

}  // namespace systole
